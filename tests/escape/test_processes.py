# SPDX-License-Identifier: Apache-2.0
"""D027-D053: ending, not ending, and what the program is started with."""

import json
import os
import signal
import subprocess
import time
import uuid

import pytest

import jail


def token():
    return "cay-test-" + uuid.uuid4().hex


def test_D028_a_neighbour_does_not_die(folder):
    mark = token()
    neighbour = jail.start("--in", jail.GUEST, "--", "/workspace/input/guest", "linger", mark, "say")
    try:
        jail.held(jail.guest("D028"))
        jail.held(jail.guest("D029"))
        assert neighbour.poll() is None
        assert jail.processes_with(mark)
    finally:
        neighbour.terminate()
        neighbour.communicate(timeout=10)
    assert jail.wait_gone(mark) == []


def test_D030_nothing_survives_the_end(folder):
    mark = token()
    answer = jail.guest("D030", mark)
    assert answer.code == 0, answer
    assert jail.wait_gone(mark) == []


@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGKILL, signal.SIGINT])
def test_D030_nothing_survives_cay(folder, sig):
    mark = token()
    process = jail.start("--in", jail.GUEST, "--", "/workspace/input/guest", "linger", mark, "say")
    assert jail.processes_with(mark)
    process.send_signal(sig)
    if sig == signal.SIGINT:
        time.sleep(0.1)
        process.send_signal(sig)
    process.communicate(timeout=10)
    assert jail.wait_gone(mark) == []


def test_D031_a_child_that_holds_stdout_holds_nobody_up(folder):
    answer = jail.guest("D031")
    assert answer.code == 0, answer
    assert answer.seconds < 1.5, answer


@pytest.mark.parametrize("probe", ["D032", "D033"])
def test_D032_D033_the_deadline_holds(folder, probe):
    answer = jail.guest(probe, flags=["--timeout", "1s", "--json"], timeout=20)
    assert answer.code == 124, answer
    assert answer.cause == "timeout"
    assert answer.seconds < 2.5, answer


def test_D034_a_fork_bomb_meets_its_limit(folder):
    answer = jail.guest("D034", "64", flags=["--pids", "64", "--json"], timeout=30)
    assert answer.code == 0, answer
    assert '"ok": true' in answer.stdout, answer


def test_D034_the_flag_tells_of_refused_processes(folder, facts):
    if facts["limits"]["pids"]["enforced_by"] == "rlimit":
        pytest.skip("without a cgroup nobody counts refused forks")
    answer = jail.guest("D034", "64", flags=["--pids", "64", "--json"], timeout=30)
    assert "pids" in answer.flags, answer
    assert answer.flags["pids"]["limit"] == 64


def test_D034_a_bomb_that_goes_on_does_not_stall_the_host(folder, facts):
    process = subprocess.Popen(jail.command("--pids", "256", "--timeout", "3s", "--json", "--in", jail.GUEST,
                                            "--", "/workspace/input/guest", "D034-forever"),
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    time.sleep(0.5)
    worst = 0.0
    for _ in range(50):
        start = time.monotonic()
        subprocess.run(["/bin/true"], check=True)
        worst = max(worst, time.monotonic() - start)
        time.sleep(0.02)
    neighbour = jail.run("--", "/bin/true")
    process.communicate(timeout=20)
    assert neighbour.code == 0, neighbour
    assert process.returncode == 124
    if facts["limits"]["cpu_millis"]["enforced_by"] in ("cgroup1", "cgroup2"):
        assert worst < 0.5, f"a fork on the host took {worst:.3f} s"


def test_D041_the_environment_is_the_documented_one(folder):
    canaries = {"AWS_SECRET_ACCESS_KEY": "canary", "LD_LIBRARY_PATH": "/canary", "SSH_AUTH_SOCK": "canary",
                "PYTHONPATH": "/canary", "http_proxy": "canary", "CAY_TEST_CANARY": "canary"}
    answer = jail.run("-e", "GIVEN=1", "--", "/usr/bin/env", env=canaries)
    names = {line.split("=", 1)[0] for line in answer.text.splitlines()}
    assert names == {"PATH", "HOME", "LANG", "TERM", "TZ", "USER", "GIVEN"}, names
    assert "canary" not in answer.text


@pytest.mark.parametrize("variable", ["LD_PRELOAD", "LD_AUDIT"])
def test_D044_a_preloaded_library_gets_into_the_users_process_only(folder, variable):
    answer = jail.run("--in", jail.CANARY, "-e", f"{variable}=/workspace/input/canary.so", "--", "/bin/true")
    assert answer.code == 0, answer
    loaded = (folder / "loaded").read_text().split()
    assert len(loaded) == 1 and loaded != ["1"], loaded


def test_D044_start_files_are_read_by_the_users_process_only(folder):
    (folder / "start").write_text("echo $$ >> /workspace/output/started\n")
    answer = jail.run("--in", "start", "-e", "BASH_ENV=/workspace/input/start", "-e", "ENV=/workspace/input/start",
                      "-e", "PYTHONSTARTUP=/workspace/input/start", "-e", "NODE_OPTIONS=--require /workspace/input/start",
                      "--", "/bin/bash", "-c", "true")
    assert answer.code == 0, answer
    assert "1" not in (folder / "started").read_text().split()


def test_D048_control_sequences_are_inert_in_the_document(folder):
    code = r"import sys; sys.stdout.buffer.write(b'\x1b]52;c;ZXZpbA==\x07\x1b]0;t\x07\x1bP$q\x1b\\\x1b[2J\x9b31m\x85')"
    answer = jail.run("--json", "-c", code)
    assert answer.code == 0, answer
    assert not any(byte in answer.out for byte in b"\x1b\x07\x9b\x85"[:2]), answer.out
    json.loads(answer.out)


@pytest.mark.parametrize("code", [0, 1, 2, 3, 77, 124, 125, 126, 127, 128, 129, 137, 200, 255])
def test_D049_exit_codes_are_the_programs_own(folder, code):
    answer = jail.run("--", "/bin/sh", "-c", f"exit {code}")
    assert answer.code == code, answer


FATAL = [n for n in range(1, 32) if n not in (signal.SIGCHLD, signal.SIGCONT, signal.SIGSTOP, signal.SIGTSTP,
                                              signal.SIGTTIN, signal.SIGTTOU, signal.SIGURG, signal.SIGWINCH)]


@pytest.mark.parametrize("number", FATAL)
def test_D049_signals_are_told(folder, number):
    answer = jail.guest("D049-signal", number, flags=["--json"])
    assert answer.code == 128 + number, answer
    assert answer.cause == "signaled"
    assert answer.document["signal"] == number, answer.document
    assert answer.document["exit_code"] in (None, 128 + number), answer.document


def test_D049_what_cannot_be_started_is_told(folder):
    (folder / "plain").write_text("no program")
    (folder / "noexec").write_bytes(b"\x7fELF garbage")
    (folder / "noexec").chmod(0o755)
    assert jail.run("--", "/workspace/missing").code == 127
    assert jail.run("--", "missing-program").code == 127
    assert jail.run("--in", "plain", "--", "/workspace/input/plain").code == 126
    assert jail.run("--in", "noexec", "--", "/workspace/input/noexec").code == 126
    assert jail.run("--", "/etc").code == 126


def test_D051_arguments_arrive_whole_or_are_refused(folder):
    many = [f"{n}" for n in range(10000)]
    answer = jail.run("--", "/usr/bin/printf", "%s\\n", *many)
    assert answer.code == 0 and answer.text.split() == many, answer.code
    # 128 KiB is the most that the kernel takes as one argument; our own start of cay ends there.
    long = "x" * (128 * 1024 - 1)
    answer = jail.run("--output", "1M", "--", "/usr/bin/printf", "%s", long)
    assert answer.code == 0 and answer.text == long, answer.code
    answer = jail.run("--", "/usr/bin/printf", "%s", *["y" * 100000] * 12)
    assert answer.code in (2, 125) and answer.out == b"" and b"1 MiB" in answer.err, answer


def test_D051_bytes_that_are_no_text_arrive(folder):
    answer = jail.run("-e", b"ODD=\xff\xfe", "--", "/bin/sh", "-c", b"printf '%s' \"$1$ODD\"", "sh", b"\x80\xc0")
    assert answer.out == b"\x80\xc0\xff\xfe", answer


def test_D198_the_program_starts_in_a_clean_state(folder):
    code = ("import os, signal, resource\n"
            "s = open('/proc/self/status').read()\n"
            "get = lambda k: [l.split()[1] for l in s.splitlines() if l.startswith(k + ':')][0]\n"
            "print(get('SigBlk'), get('SigIgn'), oct(os.umask(0o22)), os.getcwd(), os.getpgrp() == os.getpid(),\n"
            "      resource.getrlimit(resource.RLIMIT_CORE))\n")
    answer = jail.run("-c", code, "--no-libraries")
    words = answer.text.split(maxsplit=5)
    assert words[0] == "0000000000000000", answer
    # Python itself ignores SIGPIPE and SIGXFSZ; glibc's posix_spawn leaves its own 32 and 33 ignored.
    assert int(words[1], 16) & ~0x181001000 == 0, answer
    assert words[2:5] == ["0o22", "/workspace", "True"], answer
    assert words[5].strip() == "(1, 1)", answer
