# SPDX-License-Identifier: Apache-2.0
"""D054-D076: the kernel's surface."""

import os
import platform
import shutil
import socket
import time
import uuid

import pytest

import jail


def test_D056_node_starts_without_io_uring(folder):
    if not shutil.which("node"):
        pytest.skip("no node on this machine")
    answer = jail.run("--lang", "node", "-c", "require('fs').writeFileSync('/workspace/x', '1'); console.log(6*7)")
    assert answer.code == 0 and answer.text.strip() == "42", answer


@pytest.mark.parametrize("probe", ["D057-i386", "D057-x32"])
def test_D057_a_foreign_architecture_ends_the_program(folder, probe):
    answer = jail.guest(probe, flags=["--json"])
    assert answer.code == 128 + 31, answer
    assert answer.cause == "signaled"


def test_D059_copies_fall_back(folder):
    jail.held(jail.python("copies.py"))


def read_golden():
    path = jail.HERE / "golden" / f"syscalls-{platform.machine()}.txt"
    if not path.exists():
        pytest.skip(f"no table of system calls for {platform.machine()}")
    lines = [line.split() for line in path.read_text().splitlines() if not line.startswith("#")]
    return {line[0]: line[-1].split("|") for line in lines}


def test_D061_every_system_call_has_its_outcome(folder):
    golden = read_golden()
    answer = jail.guest("D061", timeout=120)
    jail.held(answer)
    seen = dict(line.split() for line in answer.text.splitlines()[:-1])
    assert seen.keys() == golden.keys()
    different = {nr: (seen[nr], golden[nr]) for nr in golden if seen[nr] not in golden[nr]}
    assert different == {}


def test_D065_denied_calls_are_counted(folder):
    answer = jail.guest("D065", flags=["--json"])
    assert answer.code == 0, answer
    assert "syscall_denied" in answer.flags, answer
    for name in ("bpf", "perf_event_open", "kexec_load", "init_module", "reboot", "iopl", "acct", "quotactl",
                 "userfaultfd", "memfd_secret", "syslog"):
        assert answer.denied.get(name) == 1, answer.denied


def test_D194_a_million_denials_are_counted_not_logged(folder):
    code = ("import ctypes\nlibc = ctypes.CDLL(None)\nfor _ in range(20000): libc.syscall(165, 0, 0, 0, 0, 0)\n")
    answer = jail.run("--json", "--timeout", "60s", "-c", code)
    assert answer.code == 0, answer
    assert answer.denied == {"mount": 20000}
    assert len(answer.out) < 65536


def uids_of(pid):
    with open(f"/proc/{pid}/status") as file:
        line = next(line for line in file if line.startswith("Uid:"))
    return {int(word) for word in line.split()[1:]}


def test_D068_each_sandbox_has_uids_of_its_own(folder):
    marks = ["cay-test-" + uuid.uuid4().hex for _ in range(2)]
    processes = [jail.start("--in", jail.GUEST, "--", "/workspace/input/guest", "linger", mark, "say")
                 for mark in marks]
    try:
        uids = [uids_of(jail.processes_with(mark)[0]) for mark in marks]
    finally:
        for process in processes:
            process.terminate()
            process.communicate(timeout=10)
    assert all(len(uid) == 1 and 0 not in uid for uid in uids), uids
    if jail.IS_ROOT:
        assert uids[0] != uids[1] and all(min(uid) >= 1879048192 for uid in uids), uids


def secrets_of_host():
    words = [socket.gethostname(), str(jail.TOP)]
    if jail.IS_ROOT:
        # An ordinary user's workspace is a bound directory, and the mount table tells its path.
        words.append(os.environ["CAY_STATE"])
    for path in ("/proc/sys/kernel/random/boot_id", "/etc/machine-id"):
        try:
            with open(path) as file:
                words.append(file.read().strip())
        except OSError:
            pass
    return [word for word in words if len(word) > 3]


def test_D072_proc_tells_nothing_of_the_host(folder):
    answer = jail.python("proc.py", "-e", "SECRETS=" + "\n".join(secrets_of_host()))
    jail.held(answer)
    jail.held(jail.guest("D072", socket.gethostname()))


def test_D076_sockets_of_the_host_cannot_be_reached(folder):
    name = "cay-test-" + uuid.uuid4().hex
    path = folder / "socket"
    with socket.socket(socket.AF_UNIX) as abstract, socket.socket(socket.AF_UNIX) as named, \
            socket.socket(socket.AF_INET) as tcp:
        abstract.bind("\0" + name)
        named.bind(str(path))
        tcp.bind(("127.0.0.1", 0))
        for listener in (abstract, named, tcp):
            listener.listen()
        jail.held(jail.guest("D076", "@" + name, path))
        port = tcp.getsockname()[1]
        code = (f"import socket\ns = socket.socket()\ns.settimeout(2)\n"
                f"try:\n s.connect(('127.0.0.1', {port}))\n print('reached')\nexcept OSError as e:\n print(e.errno)\n")
        answer = jail.run("-c", code)
        assert answer.code == 0 and "reached" not in answer.text, answer


def test_D080_no_name_is_resolved(folder):
    jail.held(jail.python("resolve.py"))


def test_D050_a_crash_starts_no_helper_and_leaves_no_core(folder):
    start = time.monotonic()
    answer = jail.run("--", "/bin/sh", "-c", "ulimit -c unlimited; kill -SEGV $$")
    assert answer.code == 128 + 11, answer
    assert time.monotonic() - start < 5
    assert not list(folder.glob("core*"))
    answer = jail.run("-c", "import resource; resource.setrlimit(resource.RLIMIT_CORE, (0, 0))")
    assert answer.code == 1 and b"not allowed" in answer.err, answer
