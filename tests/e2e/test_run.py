# SPDX-License-Identifier: Apache-2.0
"""`cay run`: what goes in, what comes out, and the exit code."""
import base64
import hashlib
import os

import pytest


def test_a_program_runs_and_its_output_comes_out(cay):
    done = cay.run("--", "/bin/echo", "hello", "there")
    assert (done.code, done.out, done.err) == (0, b"hello there\n", b"")


@pytest.mark.parametrize("code", [0, 1, 3, 42, 127, 255])
def test_the_exit_code_is_the_programs_own(cay, code):
    done = cay.run("--", "sh", "-c", f"exit {code}")
    assert done.code == code
    assert done.err == b""


def test_code_is_python_unless_said(cay):
    assert cay.run("-c", "print(6 * 7)").out == b"42\n"


def test_the_language_can_be_chosen(cay):
    assert cay.run("--lang", "bash", "-c", "echo $((6 * 7))").out == b"42\n"


def test_code_comes_from_stdin(cay):
    assert cay.run("-", stdin=b"print('from stdin')").out == b"from stdin\n"


def test_a_file_runs_by_its_extension_with_arguments(cay):
    cay.write("show.py", "import sys; print(sys.argv[1:])")
    assert cay.run("show.py", "a", "--", "-b", "--json").out == b"['a', '-b', '--json']\n"


def test_a_file_runs_by_its_first_line(cay):
    cay.write("script", "#!/bin/sh\necho $# $1\n")
    assert cay.run("script", "x y").out == b"1 x y\n"


def test_c_is_compiled_and_run(cay):
    cay.write("a.c", '#include <stdio.h>\nint main(void) { puts("C"); return 5; }\n')
    done = cay.run("a.c")
    assert (done.code, done.out) == (5, b"C\n")


def test_c_that_does_not_compile_is_the_compilers_failure(cay):
    cay.write("a.c", "int main(void) { return nonsense; }\n")
    done = cay.run("a.c")
    assert done.code == 1
    assert b"nonsense" in done.err


def test_stdin_reaches_the_program_and_ends(cay):
    assert cay.run("--", "cat", stdin=b"one\ntwo").out == b"one\ntwo"


def test_all_of_a_long_stdin_arrives(cay):
    data = os.urandom(1 << 20) * 8
    done = cay.run("--", "sha256sum", stdin=data)
    assert done.out.split()[0].decode() == hashlib.sha256(data).hexdigest()


def test_a_program_that_does_not_read_stdin_is_not_held_up(cay):
    done = cay.run("--", "true", stdin=bytes(4 << 20))
    assert done.code == 0


def test_output_is_any_bytes(cay):
    done = cay.run("-c", "import sys; sys.stdout.buffer.write(bytes(range(256)) * 16)")
    assert done.out == bytes(range(256)) * 16


def test_stdout_and_stderr_stay_apart(cay):
    done = cay.run("--", "sh", "-c", "echo out; echo err >&2")
    assert (done.out, done.err) == (b"out\n", b"err\n")


def test_output_is_live(cay):
    with cay.start("run", "--", "sh", "-c", "echo first; sleep 20") as process:
        assert process.stdout.readline() == b"first\n"
        process.terminate()
        assert process.wait(timeout=5) == 143


def test_long_output_keeps_head_and_tail_and_says_what_is_gone(cay):
    done = cay.run("--output", "4K", "--", "seq", "1", "100000")
    assert done.code == 0
    assert done.out.startswith(b"1\n2\n3\n")
    assert done.out.endswith(b"99999\n100000\n")
    assert len(done.out) == 4096
    assert f"[cay: {588895 - 4096} bytes of stdout dropped]" in done.said


def test_the_environment_is_ours_and_nothing_else(cay):
    done = cay.run("-e", "A=1", "-e", "B=x=y", "--", "env", env={"SECRET": "s", "TZ": "/etc/shadow"})
    pairs = dict(line.split("=", 1) for line in done.out.decode().splitlines())
    assert pairs.pop("TERM")
    assert pairs == {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/workspace", "USER": "user",
                     "LANG": "C.UTF-8", "TZ": "UTC", "A": "1", "B": "x=y"}


def test_a_variable_of_ours_is_passed_on_by_name(cay):
    assert cay.run("-e", "MINE", "--", "printenv", "MINE", env={"MINE": "yes"}).out == b"yes\n"


def test_variables_come_from_a_file_and_flags_win(cay):
    cay.write("vars", "# comment\nA=from file\n\nB=2\n")
    done = cay.run("--env-file", "vars", "-e", "B=3", "--", "sh", "-c", 'echo "$A/$B"')
    assert done.out == b"from file/3\n"


def test_the_working_directory(cay):
    assert cay.run("--", "pwd").out == b"/workspace\n"
    assert cay.run("-w", "/tmp", "--", "pwd").out == b"/tmp\n"
    assert cay.run("--workspace", "none", "--", "pwd").out == b"/tmp\n"


def test_not_found_is_127_and_not_executable_126(cay):
    done = cay.run("--", "no-such-program")
    assert done.code == 127 and "'no-such-program' was not found" in done.said
    done = cay.run("--", "/etc/passwd")
    assert done.code == 126 and "could not be executed" in done.said


def test_quiet_says_nothing_of_its_own(cay):
    assert cay.run("-q", "--", "sh", "-c", "kill -SEGV $$").err == b""


def test_the_document_is_whole(cay):
    done = cay.json("-c", "import sys; print('ü'); print('e', file=sys.stderr); sys.exit(3)")
    doc = done.document
    assert done.code == 3 and done.err == b""
    assert (doc["stdout"], doc["stderr"]) == ("ü\n", "e\n")
    assert (doc["cause"], doc["exit_code"], doc["signal"], doc["flags"]) == ("exited", 3, None, [])
    assert doc["stdout_info"]["bytes"] == 3 and not doc["stdout_info"]["truncated"]
    assert set(doc["usage"]) >= {"wall_ms", "cpu_ms", "peak_memory_bytes", "io_read_bytes",
                                 "io_write_bytes", "processes"}
    assert doc["limits"]["memory_bytes"]["value"] == 1 << 30
    assert all(limit["enforced_by"] for limit in doc["limits"].values())
    assert doc["start"] == "cold"
    assert doc["isolation"]["requested"] == doc["isolation"]["actual"] == "jail"
    assert {"seccomp", "caps", "no_new_privs"} <= set(doc["isolation"]["layers"]["held"])
    assert doc["runtime"]["name"].startswith("python@")
    assert doc["receipt"]["seq"] == cay.receipts()


def test_the_document_carries_bytes_that_are_no_text(cay):
    doc = cay.json("-c", "import sys; sys.stdout.buffer.write(b'\\xff\\x00\\xfe')").document
    assert doc["stdout_info"]["encoding"] == "base64"
    assert base64.b64decode(doc["stdout"]) == b"\xff\x00\xfe"


def test_text_that_was_cut_is_still_text(cay):
    done = cay.json("--output", "1K", "-c", "print('ü' * 3001)")
    doc = done.document
    assert doc["stdout_info"]["encoding"] == "utf-8"
    assert f"[cay: {6003 - 1024} bytes dropped]" in doc["stdout"]
    assert done.flags["output_truncated"]["number"] == 6003 - 1024
    assert done.flags["output_truncated"]["limit"] == 1024


def test_output_that_cannot_be_written_is_not_success(cay):
    with open("/dev/full", "wb") as full:
        done = cay.run("--", "echo", "x", stdout=full)
    assert done.code == 125
    assert "No space left" in done.said


def test_help_and_version(cay):
    assert b"cay run [flags]" in cay("run", "--help").out
    assert cay("help", "run").out == cay("run", "--help").out
    assert cay("version").out.startswith(b"cay ")
    assert b"receipt" in cay("help").out
