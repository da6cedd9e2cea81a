# SPDX-License-Identifier: Apache-2.0
"""Results of a run that means harm: what is good still comes back, and the rest is told."""
import os
import signal
import time

import pytest

MIB = 1 << 20
WRITE = "import os, pathlib\np = pathlib.Path('/workspace/output')\n"


def failed(done):
    return {f["name"]: f["reason"] for f in done.document["files_failed"]}


def test_a_result_that_is_too_large_leaves_the_others_alone(cay):
    done = cay.json("--disk", "16M", "-c", WRITE + "(p/'a').write_text('A'); (p/'z').write_text('Z')\n"
                    "try: os.truncate(os.open(p/'big', os.O_CREAT | os.O_RDWR), 1 << 30)\n"
                    "except OSError: os._exit(77)")
    if done.code == 77:
        pytest.skip("here no file can be larger than the disk limit")
    assert done.code == 125
    assert sorted(os.listdir(cay.folder)) == ["a", "z"]
    assert list(failed(done)) == ["big"] and "the workspace's limit" in failed(done)["big"]


def test_links_do_not_multiply_what_comes_back(cay):
    done = cay.json("--disk", "32M", "-c", WRITE + "(p/'0').write_bytes(b'x' * (20 << 20))\n"
                    "for i in range(1, 4): os.link(p/'0', p/f'{i}')\n(p/'small').write_text('s')")
    assert done.code == 125
    names = sorted(os.listdir(cay.folder))
    assert len(names) == 2 and names[1] == "small" and len(failed(done)) == 3
    assert all("larger than the workspace may be" in reason for reason in failed(done).values())


def test_a_sparse_result_stays_sparse(cay):
    code = WRITE + ("f = open(p/'sparse', 'wb'); f.seek(8 << 20); f.write(b'x' * 100000)\n"
                    "f.truncate(24 << 20)\n")
    done = cay.json("--disk", "32M", "-c", code)
    assert done.code == 0, done
    there = (cay.folder / "sparse").stat()
    assert there.st_size == 24 * MIB and there.st_blocks * 512 <= MIB
    want = bytes(8 * MIB) + b"x" * 100000
    assert (cay.folder / "sparse").read_bytes() == want + bytes(24 * MIB - len(want))
    # Compared with what is there, it is the same file.
    assert cay.run("--disk", "32M", "-c", code).code == 0


def test_sparse_results_do_not_use_up_the_allowance(cay):
    done = cay.run("--disk", "32M", "-c", WRITE + "for i in range(4):\n"
                   "    os.truncate(os.open(p/f'{i}', os.O_CREAT | os.O_RDWR), 24 << 20)")
    assert done.code == 0, done
    assert sorted(os.listdir(cay.folder)) == ["0", "1", "2", "3"]


def test_the_first_ten_thousand_come_back(cay):
    done = cay.json("-c", WRITE + "for i in range(10007): (p/f'{i}').touch()", timeout=120)
    assert done.code == 125
    assert len(os.listdir(cay.folder)) == len(done.document["files"]) == 10000
    (reason,) = failed(done).values()
    assert reason.startswith("7 results did not come back")


def test_a_folder_that_cannot_be_read_is_named(cay):
    done = cay.run("-c", WRITE + "(p/'ok').write_text('1'); (p/'closed').mkdir()\n"
                   "(p/'closed'/'x').write_text('2'); (p/'closed').chmod(0)")
    assert (cay.folder / "ok").read_text() == "1"
    if (cay.folder / "closed").exists():
        pytest.skip("here the agent may read it")
    assert done.code == 125 and "the folder 'closed'" in done.said and "cannot be read" in done.said


ODD = ["-rf", "d/-x", "a\nb", "\x1b[31m", "\x7f", "\u009b31m", "x\u202etxt.exe", "\u2066a", "\u200e"]


def test_names_that_could_do_harm_do_not_come_back(cay):
    done = cay.json("-c", WRITE + f"(p/'d').mkdir(); (p/'gr\\xfc\\xdfe').touch()\n"
                    f"for name in {ODD!r}: (p/name).write_text('x')")
    assert done.code == 125 and os.listdir(cay.folder) == ["grüße"]
    assert len(failed(done)) == len(ODD) and "-rf" in failed(done)
    for odd in ("\x1b", "\u202e", "\u2066", "\x7f", "\u009b"):
        assert odd not in done.said
    assert done.said.count("\n") == len(ODD)


def test_names_that_could_do_harm_come_back_when_they_are_spelled(cay):
    code = "open('-x', 'w').close(); open('a\\nb', 'w').close(); open('-y', 'w').close()"
    done = cay.run("--out=-x", "--out", "a\nb", "--out=*y", "-c", code)
    assert done.code == 125 and sorted(os.listdir(cay.folder)) == ["-x", "a\nb"]
    assert "'-y' did not come back" in done.said


def test_many_odd_names_are_a_few_lines(cay):
    done = cay.run("-c", WRITE + "for i in range(500): (p/f'-{i}').touch()")
    assert done.code == 125 and not os.listdir(cay.folder)
    assert done.said.count("\n") == 21 and "480 more results did not come back" in done.said


def test_an_escape_and_its_spelling_look_different(cay):
    done = cay.run("-c", WRITE + "(p/'-\\x1b').touch(); (p/'-\\\\x1b').touch()")
    assert "'-\\x1b'" in done.said and "'-\\\\x1b'" in done.said


def test_a_signal_ends_the_collection(cay):
    with cay.start("run", "--disk", "2G", "-c", WRITE + "for i in range(200):\n"
                   "    os.truncate(os.open(p/f'{i}', os.O_CREAT | os.O_RDWR), 1 << 30)\n"
                   "print('done', flush=True)") as process:
        assert process.stdout.readline() == b"done\n"
        time.sleep(1.5)
        began = time.monotonic()
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=20)
    assert time.monotonic() - began < 5
    assert process.returncode != 0 and b"stopped by a signal" in err
