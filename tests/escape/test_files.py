# SPDX-License-Identifier: Apache-2.0
"""D001-D026: what the guest sees of files, and what comes back from it."""

import hashlib
import os
import pathlib
import stat

import pytest

import jail


def test_D001_nothing_of_the_host_has_a_name(folder):
    (folder / "secret").write_text("x")
    own = [folder / "secret", jail.TOP, jail.BUILD, os.environ["CAY_STATE"], "/var/lib/cay"]
    etc = {"passwd", "group", "hosts", "hostname", "host.conf", "resolv.conf", "nsswitch.conf",
           "shells", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "ssl", "ca-certificates",
           "alternatives", "fonts", "localtime", "timezone", "mime.types", "services", "protocols",
           "machine-id", "profile", "bash.bashrc", "os-release", "java", "python3", "R", "perl",
           "gai.conf", "rpc", "networks", "ethertypes", "terminfo", "inputrc", "magic", "pki", "debian_version",
           "matplotlibrc", "ImageMagick-6"}
    names = [f"/etc/{name}" for name in os.listdir("/etc") if name not in etc and not name.startswith("java-")]
    for top in ("/home", "/var", "/run", "/srv", "/mnt", "/media"):
        if os.path.isdir(top) and os.access(top, os.R_OK):
            names += [f"{top}/{name}" for name in os.listdir(top) if f"{top}/{name}" != "/home/user"]
    # Symlinks to nowhere and into /usr say nothing.
    names = [name for name in names if not os.path.islink(name)]
    jail.held(jail.guest("D001", *own, *names[:400]))


def test_D002_the_host_is_unchanged(folder):
    watched = ["/usr", "/usr/bin", "/etc", "/", "/usr/bin/env", "/bin/sh"]
    before = [os.stat(path).st_mtime_ns for path in watched]
    listed = sorted(os.listdir("/usr/bin"))
    jail.held(jail.guest("D002"))
    assert [os.stat(path).st_mtime_ns for path in watched] == before
    assert sorted(os.listdir("/usr/bin")) == listed


def test_D007_our_programs_are_unchanged(folder):
    ours = [path for path in (jail.CAY, jail.BUILD / "cay-warden", jail.GUEST) if os.path.exists(path)]
    before = [hashlib.sha256(pathlib.Path(path).read_bytes()).digest() for path in ours]
    jail.held(jail.guest("D007"))
    assert [hashlib.sha256(pathlib.Path(path).read_bytes()).digest() for path in ours] == before


def test_D008_descriptors_of_ours_do_not_get_in(folder):
    opened = [os.open(path, os.O_RDONLY) for path in ("/etc", "/", "/usr/bin/env")]
    high = os.dup2(opened[0], 200)
    try:
        jail.held(jail.guest("D008", fds=[*opened, high]))
    finally:
        for fd in [*opened, high]:
            os.close(fd)


@pytest.mark.parametrize("cwd", ["/proc/1/root", "/proc/1/cwd", "/etc/passwd", "/missing", "..", "/proc/self/exe",
                                 *[f"/proc/self/fd/{n}" for n in (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 63)]])
def test_D009_a_bad_cwd_is_refused(cwd, folder):
    answer = jail.run("-w", cwd, "--", "/bin/pwd", "-P")
    if answer.code == 0:  # the path may mean something harmless inside
        assert not answer.text.startswith("(unreachable)")
        assert answer.text.strip() in ("/", "/workspace"), answer
    else:
        assert answer.code in (2, 125, 126, 127), answer
        assert answer.out == b"" and answer.err.strip(), answer


def test_D009_a_link_to_the_root_stays_inside(folder):
    work = folder / "work"
    work.mkdir()
    work.chmod(0o777)
    (work / "link").symlink_to("/")
    answer = jail.run("--workspace", f"{work}:rw", "-w", "/workspace/link", "--", "/bin/ls")
    assert answer.code != 0 or "workspace" in answer.text.split(), answer


def test_D011_no_special_bits_come_back(folder):
    code = ("import os, shutil\nos.chdir('/workspace/output')\n"
            "open('s','w').write('x'); os.chmod('s', 0o7777)\n")
    answer = jail.run("-c", code)
    assert answer.code == 0, answer
    mode = stat.S_IMODE((folder / "s").stat().st_mode)
    assert mode & 0o7000 == 0, oct(mode)


def test_D015_D016_D017_sandboxes_do_not_notice_each_other(folder):
    shared = {} if jail.IS_ROOT else {"SHARED_DEVICES": "1"}
    flags = [word for key, value in shared.items() for word in ("-e", f"{key}={value}")]
    script = jail.HERE / "guests" / "hold.py"
    first = jail.start("-e", "ROLE=a", *flags, "--lang", "python", script)
    try:
        jail.held(jail.python("hold.py", "-e", "ROLE=b"))
    finally:
        out, err = first.communicate(b"go\n", timeout=20)
    assert first.returncode == 0, (out, err)
    # And the next sandbox finds nothing of the last.
    jail.held(jail.python("hold.py", "-e", "ROLE=b"))


def test_D018_reading_leaves_no_trace(folder):
    files = sorted(path for path in pathlib.Path("/usr/share/doc").glob("*/copyright") if path.is_file()
                   and not path.is_symlink())[:50]
    assert files
    before = [path.stat().st_atime_ns for path in files]
    answer = jail.run("--", "/bin/cat", *files)
    assert answer.code == 0 and len(answer.out) > 1000, answer
    assert [path.stat().st_atime_ns for path in files] == before


def test_D020_only_regular_files_come_back(folder):
    answer = jail.python("links.py", timeout=20)
    assert answer.code == 0, answer
    assert (folder / "real").read_text() == "real"
    left = {str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir()}
    assert left == {"real"}, left


def test_D022_names_are_told_without_loss(folder):
    answer = jail.python("names.py", "--json", timeout=30)
    made = int(answer.stdout)
    text = answer.out.decode("utf-8")
    assert not any(c in text for c in "\x1b\x7f\x01"), "control characters in the document"
    files = [path for path in os.listdir(bytes(folder)) if os.path.isfile(os.path.join(bytes(folder), path))]
    # What could fool the caller's shell or terminal is told, not made; everything else is there.
    refused = [failed["name"] for failed in answer.document["files_failed"] if failed["name"]]
    assert len(files) + len(refused) == made, (files, answer)
    assert b"\xff\xfe\x80" in files and b"new\nline" not in files
    assert not any(name.startswith(b"-") or any(c < 32 for c in name) for name in files), files


@pytest.mark.parametrize("force", [False, True])
def test_D023_results_do_not_follow_links(folder, force):
    victim = folder / "victim"
    victim.write_text("untouched")
    out = folder / "out"
    out.mkdir()
    (out / "x").symlink_to(victim)
    (out / "dir").symlink_to(folder)
    code = ("import os\nos.chdir('/workspace/output')\nopen('x','w').write('evil')\n"
            "os.mkdir('dir')\nopen('dir/victim','w').write('evil')\n")
    jail.run(*(["--force"] if force else []), "-c", code, cwd=out)
    assert victim.read_text() == "untouched"
    assert not (folder / "x").exists()


def test_D025_no_attributes_come_back(folder):
    jail.held(jail.guest("D025"))
    assert (folder / "attributes").exists()
    assert [name for name in os.listxattr(folder / "attributes") if not name.startswith("security.selinux")] == []


def test_D026_landlock_forbids_the_canary(folder, facts):
    if "landlock" in facts["isolation"]["layers"]["absent"]:
        pytest.skip("this kernel has no Landlock, and the receipt says so")
    jail.held(jail.guest("D026"))


def test_D026_a_required_layer_is_there_or_the_run_is_refused(folder, facts):
    absent = "landlock" in facts["isolation"]["layers"]["absent"]
    answer = jail.run("--require", "landlock", "--", "/bin/true")
    assert answer.code == (125 if absent else 0), answer


def test_D139_swapping_files_for_links_brings_no_foreign_bytes(folder):
    for _ in range(5):
        answer = jail.python("swap.py", "--force", timeout=20)
        assert answer.seconds < 5, answer
        for path in folder.iterdir():
            assert not path.is_symlink()
            assert path.read_text() in ("mine", ""), path


def test_input_is_read_only_and_not_the_hosts_to_change(folder):
    (folder / "data").write_text("data")
    answer = jail.run("--in", "data", "--", "/bin/sh", "-c",
                      "cat /workspace/input/data; echo x >> /workspace/input/data; "
                      "rm -f /workspace/input/data; mv /workspace/input /workspace/i; "
                      "cat /workspace/input/data")
    assert answer.text == "datadata", answer
    assert (folder / "data").read_text() == "data"


def test_read_only_workspace_cannot_be_written(folder):
    work = folder / "work"
    work.mkdir()
    (work / "file").write_text("x")
    answer = jail.run("--workspace", f"{work}:ro", "--", "/bin/sh", "-c",
                      "cat file; echo y > file; echo z > new; rm -f file; mkdir d")
    assert answer.text == "x", answer
    assert sorted(os.listdir(work)) == ["file"] and (work / "file").read_text() == "x"


def test_programs_that_are_planted_are_not_run_by_us(folder):
    """inspect_ai #5359: helpers found through the guest's own PATH."""
    for name in ("sh", "tar", "rm", "mount", "newuidmap", "cay-warden"):
        planted = folder / name
        planted.write_text(f"#!/bin/sh\ntouch {folder}/planted-ran\n")
        planted.chmod(0o755)
    answer = jail.run("-e", f"PATH={folder}", "--", "/bin/true")
    assert answer.code == 0, answer
    assert not (folder / "planted-ran").exists()
