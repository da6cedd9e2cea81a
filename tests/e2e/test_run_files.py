# SPDX-License-Identifier: Apache-2.0
"""Files that go in and files that come back."""
import hashlib
import os
import stat

WRITE = "import pathlib, sys\np = pathlib.Path('/workspace/output')\n"


def test_inputs_are_there_and_read_only(cay):
    cay.write("in.txt", "data")
    assert cay.run("--in", "in.txt", "--", "cat", "/workspace/input/in.txt").out == b"data"
    done = cay.run("--in", "in.txt", "--", "sh", "-c", "echo x > /workspace/input/in.txt")
    assert done.code != 0
    assert (cay.folder / "in.txt").read_text() == "data"


def test_results_come_back(cay):
    done = cay.json("-c", WRITE + "(p/'a.txt').write_text('A'*300000); (p/'d').mkdir();"
                                  "(p/'d'/'b').write_text('B')")
    assert done.code == 0, done
    assert (cay.folder / "a.txt").read_text() == "A" * 300000
    assert (cay.folder / "d" / "b").read_text() == "B"
    files = {f["path"]: f for f in done.document["files"]}
    assert files["a.txt"]["size"] == 300000
    assert files["a.txt"]["sha256"] == hashlib.sha256(b"A" * 300000).hexdigest()


def test_results_never_replace_without_force(cay):
    cay.write("a", "mine")
    code = WRITE + "(p/'a').write_text('theirs')"
    done = cay.run("-c", code)
    assert done.code == 125 and "--force" in done.said
    assert (cay.folder / "a").read_text() == "mine"
    assert cay.run("--force", "-c", code).code == 0
    assert (cay.folder / "a").read_text() == "theirs"
    assert cay.run("-c", code).code == 0
    assert os.listdir(cay.folder) == ["a"]


def test_results_never_go_through_a_symlink_of_the_folder(cay):
    target = cay.write("elsewhere/target", "safe")
    os.symlink("elsewhere/target", cay.folder / "a")
    os.symlink("elsewhere", cay.folder / "d")
    done = cay.run("--force", "-c", WRITE + "(p/'d').mkdir(); (p/'d'/'new').write_text('x')")
    assert done.code == 125
    done = cay.run("-c", WRITE + "(p/'a').write_text('x')")
    assert done.code == 125
    assert target.read_text() == "safe"
    assert os.listdir(cay.folder / "elsewhere") == ["target"]


def test_only_regular_files_without_a_dot_come_back(cay):
    done = cay.run("-c", WRITE + "import os\n(p/'ok').write_text('1'); os.symlink('/etc/passwd', p/'l');"
                                 "os.mkfifo(p/'f'); (p/'.envrc').write_text('evil');"
                                 "(p/'.git'/'hooks').mkdir(parents=True);"
                                 "(p/'.git'/'hooks'/'x').write_text('evil')")
    assert done.code == 0
    assert os.listdir(cay.folder) == ["ok"]
    assert "left out" in done.said


def test_results_have_no_special_bits(cay):
    done = cay.run("-c", WRITE + "f = p/'x'; f.write_text('1'); f.chmod(0o6755)")
    assert done.code == 0
    assert stat.S_IMODE((cay.folder / "x").stat().st_mode) & 0o7000 == 0


def test_hostile_names_are_escaped_when_shown(cay):
    cay.write("\x1b[31m", "mine")
    done = cay.run("-c", WRITE + "(p/'\\x1b[31m').write_text('theirs')")
    assert done.code == 125
    assert b"\x1b" not in done.err and b"\\x1b" in done.err


def test_out_takes_patterns_and_folders(cay):
    done = cay.run("--out", "*.csv", "--out", "plots/*.png=figures", "-c",
                   "import os\nos.mkdir('plots')\nopen('t.csv','w').write('1')\n"
                   "open('plots/a.png','w').write('2')\nopen('plots/b.txt','w').write('3')")
    assert done.code == 0
    assert (cay.folder / "t.csv").read_text() == "1"
    assert os.listdir(cay.folder / "figures") == ["a.png"]
    assert sorted(os.listdir(cay.folder)) == ["figures", "t.csv"]


def test_a_pattern_that_matches_nothing_is_warned_of(cay):
    done = cay.run("--out", "a*", "--out", "nomatch*", "-c", "open('a.txt', 'w').close()")
    assert done.code == 0 and (cay.folder / "a.txt").exists()
    assert done.said.strip() == "cay: --out 'nomatch*' matched no file in /workspace"


def test_results_that_cannot_be_delivered_are_in_the_document(cay):
    cay.write("a", "mine")
    done = cay.json("-c", WRITE + "(p/'a').write_text('theirs'); (p/'b').write_text('B')")
    assert done.code == 125
    assert [f["path"] for f in done.document["files"]] == ["b"]
    (failed,) = done.document["files_failed"]
    assert failed["name"] == "a" and "--force" in failed["reason"]


def test_results_come_back_after_a_failure_and_a_timeout(cay):
    assert cay.run("-c", WRITE + "(p/'a').write_text('1'); sys.exit(9)").code == 9
    assert cay.run("--timeout", "1s", "-c",
                   WRITE + "import time\n(p/'b').write_text('2'); time.sleep(30)").code == 124
    assert sorted(os.listdir(cay.folder)) == ["a", "b"]


def test_a_workspace_of_the_user(cay):
    cay.write("ws/pkg/helper.py", "X = 5")
    cay.write("ws/pkg/main.py", "import helper, os\nprint(__file__, helper.X, os.listdir('/workspace'))")
    done = cay.run("--workspace", "ws:ro", "ws/pkg/main.py")
    assert done.out == b"/workspace/pkg/main.py 5 ['pkg']\n", done
    done = cay.run("--workspace", "ws:ro", "--", "sh", "-c", "echo x > new")
    assert done.code != 0 and not (cay.folder / "ws" / "new").exists()
    assert cay.run("--workspace", "ws:rw", "--", "sh", "-c", "echo x > new").code == 0
    assert (cay.folder / "ws" / "new").read_text() == "x\n"


def test_without_a_workspace_only_tmp_is_writable(cay):
    assert cay.run("--workspace", "none", "--", "sh", "-c", "echo x > /tmp/y && cat /tmp/y").out == b"x\n"
    assert cay.run("--workspace", "none", "--", "sh", "-c", "echo x > /workspace/y").code != 0
