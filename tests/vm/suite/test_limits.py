# SPDX-License-Identifier: Apache-2.0
"""Every limit on a cgroup v2 host: it holds, and the end of the run says which one it was."""
import subprocess

import pytest

EAT = "b = bytearray({mib} << 20)\nfor i in range(0, len(b), 4096): b[i] = 1\nprint('ate')"


def test_memory_ends_the_program(run):
    ran = run("--memory", "96M", "-c", EAT.format(mib=300))
    assert ran.cause == "oom", ran.document
    assert ran.code == 128 + 9
    assert "ate" not in ran.document["stdout"]
    assert ran.document["cause_detail"]["limit"] == 96 << 20
    assert ran.usage["peak_memory_bytes"] <= (96 << 20) + (4 << 20)


def test_memory_is_told_when_a_child_was_the_victim(run):
    code = f"""
import subprocess, sys
child = subprocess.run([sys.executable, '-c', {EAT.format(mib=300)!r}])
print('child', child.returncode)
sys.exit(0)
"""
    ran = run("--memory", "96M", "-c", code)
    assert ran.cause == "oom", ran.document
    assert "child -9" in ran.document["stdout"]


def test_memory_counts_many_processes_together(run):
    code = f"""
import os
for _ in range(8):
    if os.fork() == 0:
        exec({EAT.format(mib=40)!r})
        import time; time.sleep(8)
for _ in range(8):
    os.wait()
"""
    ran = run("--memory", "128M", "--timeout", "40s", "-c", code)
    assert ran.cause == "oom", ran.document


def test_memory_counts_tmp(run):
    ran = run("--memory", "64M", "--", "/bin/sh", "-c",
              "dd if=/dev/zero of=/tmp/fill bs=1M count=90")
    assert ran.cause == "oom", ran.document


def test_the_agent_is_never_the_victim(run):
    """The run goes on after its child was killed, many times over."""
    code = f"""
import subprocess, sys
for _ in range(5):
    subprocess.run([sys.executable, '-c', {EAT.format(mib=200)!r}])
print('still here')
"""
    ran = run("--memory", "64M", "-c", code)
    assert "still here" in ran.document["stdout"], ran.document


def test_the_limit_of_processes_is_flagged(run):
    code = """
import os, time
made = 0
try:
    for _ in range(64):
        if os.fork() == 0:
            time.sleep(60)
        made += 1
except BlockingIOError:
    print('refused after', made)
"""
    ran = run("--pids", "16", "-c", code)
    assert ran.cause == "exited" and "refused after" in ran.document["stdout"], ran.document
    assert int(ran.document["stdout"].split()[-1]) <= 16
    assert ran.flags["pids"]["limit"] == 16


def test_a_fork_bomb_is_dead_at_its_end(run, slow):
    bomb = "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass"
    ran = run("--pids", "64", "--timeout", "3s", "-c", bomb)
    assert (ran.cause, ran.code) == ("timeout", 124), ran.document
    assert "pids" in ran.flags
    assert ran.seconds < 3 + 1.5 * slow


def test_time_is_over(run, slow):
    ran = run("--timeout", "1s", "--", "/bin/sleep", "60")
    assert (ran.cause, ran.code) == ("timeout", 124)
    assert ran.document["cause_detail"]["limit"] == 1000
    assert 1 <= ran.seconds < 1 + 1 * slow


def test_time_is_over_for_those_who_do_not_listen(run, slow):
    code = """
import os, signal, time
for s in range(1, 65):
    try: signal.signal(s, signal.SIG_IGN)
    except (OSError, ValueError): pass
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.kill(os.getpid(), signal.SIGSTOP)
while True: time.sleep(1)
"""
    ran = run("--timeout", "2s", "-c", code)
    assert ran.cause == "timeout" and ran.seconds < 2 + 1.5 * slow


def test_processor_time_of_all_processes_is_counted(run):
    code = "import os\nos.fork()\nos.fork()\nwhile True: pass"
    ran = run("--cpus", "2", "--cpu-time", "2s", "--timeout", "40s", "-c", code)
    assert (ran.cause, ran.code) == ("cpu_time", 124), ran.document
    assert ran.usage["cpu_ms"] >= 2000


def test_the_quota_of_cores_slows(run):
    code = "import time, os\nos.fork()\nend = time.time() + 4\nwhile time.time() < end: pass"
    ran = run("--cpus", "0.5", "--timeout", "60s", "-c", code)
    assert ran.cause == "exited"
    share = ran.usage["cpu_ms"] / ran.usage["wall_ms"]
    assert 0.35 < share < 0.65, ran.usage


def test_output_keeps_head_and_tail(run):
    code = "print('first'); print('x' * 300000); print('last')"
    ran = run("--output", "64K", "-c", code)
    out = ran.document["stdout"]
    assert out.startswith("first\n") and out.endswith("last\n") and len(out) < 70000
    assert ran.flags["output_truncated"]["number"] > 200000
    assert ran.cause == "exited"


def test_the_disk_is_full(run, role):
    code = """
import errno
try:
    with open('/workspace/big', 'wb') as f:
        for _ in range(200):
            f.write(bytes(1 << 20)); f.flush()
except OSError as e:
    print(errno.errorcode[e.errno])
"""
    ran = run("--disk", "20M", "-c", code)
    if role == "root":
        assert ran.enforced_by("disk_bytes") == "loop_file", ran.document["limits"]
    if ran.enforced_by("disk_bytes") != "watcher":
        assert ran.document["stdout"].strip() in ("ENOSPC", "EDQUOT"), ran.document
    assert ran.flags["disk"]["limit"] == 20 << 20


def test_disk_io_is_held_where_the_receipt_says_so(run):
    ran = run("--", "/bin/true")
    assert ran.enforced_by("io_bytes_per_s") in ("cgroup2", "none")


@pytest.mark.parametrize("limit", ["1", "4096K", "-1", "nonsense", "0"])
def test_a_senseless_limit_is_refused(cay, limit):
    done = cay("run", f"--memory={limit}", "--", "/bin/true")
    assert done.returncode in (2, 125) and "memory" in done.stderr


@pytest.fixture
def quota_state(role, tmp_path, monkeypatch):
    """A state directory on an ext4 with project quota."""
    if role != "root":
        pytest.skip("only root mounts a file system")
    disk, mount = tmp_path / "disk", tmp_path / "mount"
    mount.mkdir()
    subprocess.run(["mke2fs", "-qF", "-t", "ext4", "-O", "quota,project", "-E",
                    "quotatype=prjquota", disk, "256M"], check=True)
    subprocess.run(["mount", "-o", "loop,prjquota", disk, mount], check=True)
    monkeypatch.setenv("CAY_STATE", str(mount / "state"))
    yield mount / "state"
    subprocess.run(["umount", mount], check=True)


def test_a_project_quota_holds_the_disk(run, quota_state):
    ran = run("--disk", "20M", "--", "/bin/dd", "if=/dev/zero", "of=/workspace/x", "bs=1M",
              "count=60")
    assert ran.enforced_by("disk_bytes") == "project_quota", ran.document["limits"]
    assert ran.code == 1 and "disk" in ran.flags
    assert list((quota_state / "runs").iterdir()) == []
