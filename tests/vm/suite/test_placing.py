# SPDX-License-Identifier: Apache-2.0
"""Where a running sandbox sits on the host: its cgroup, its uids, its namespaces."""
import glob
import os
import re
import subprocess

import pytest
from conftest import CAY

SLOTS_FROM = 1879048192  # host uids of sandboxes that root starts
SUBUIDS = range(100000, 165536)  # what the guest's /etc/subuid gives the user


@pytest.fixture
def sleepers():
    """Starts sandboxes that wait; gives the host pid of the waiting program."""
    started, seen = [], set()

    def start(*flags):
        child = subprocess.Popen(
            [CAY, "run", *flags, "-c", "import time; print('ready', flush=True); time.sleep(80)"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        started.append(child)
        assert child.stdout.readline() == "ready\n"
        fresh = sandboxed_pythons() - seen
        assert len(fresh) == 1
        seen.update(fresh)
        return fresh.pop()

    yield start
    for child in started:
        child.terminate()
        child.wait()
        child.stdout.close()


def sandboxed_pythons():
    """Host pids of Python processes that live in a pid namespace of their own."""
    found = set()
    for path in glob.glob("/proc/[0-9]*"):
        pid = int(os.path.basename(path))
        try:
            if read(path, "comm").startswith("python") and len(status(pid, "NSpid")) > 1:
                found.add(pid)
        except OSError:
            continue  # it is gone
    return found


def status(pid, key):
    with open(f"/proc/{pid}/status") as file:
        return next(line.split()[1:] for line in file if line.startswith(key + ":"))


def cgroup_of(pid):
    with open(f"/proc/{pid}/cgroup") as file:
        return "/sys/fs/cgroup" + file.read().strip()[len("0::"):]


def read(*path):
    with open(os.path.join(*path)) as file:
        return file.read().strip()


def test_the_limits_stand_in_the_codes_own_cgroup(sleepers):
    pid = sleepers("--memory", "200M", "--pids", "33", "--cpus", "0.5")
    cgroup = cgroup_of(pid)
    assert "/cay-" in cgroup
    assert read(cgroup, "memory.max") == str(200 << 20)
    assert read(cgroup, "memory.swap.max") == "0"
    assert read(cgroup, "pids.max") == "33"
    quota, period = map(int, read(cgroup, "cpu.max").split())
    assert quota / period == 0.5
    assert set(read(cgroup, "cgroup.procs").split()) == {str(pid)}, "the agent is elsewhere"


def test_host_uids_are_not_ours(sleepers, role):
    first = int(status(sleepers(), "Uid")[0])
    if role == "root":
        second = int(status(sleepers(), "Uid")[0])
        assert first >= SLOTS_FROM and second >= SLOTS_FROM
        assert first != second, "every run has its own range"
    else:
        assert first in SUBUIDS


def test_inside_there_is_no_trace_of_the_hosts_cgroups(run):
    code = "import os\nprint(open('/proc/self/cgroup').read().strip(), os.path.exists('/sys'))"
    ran = run("-c", code)
    # Names of cay's own making and nothing of the host's slices.
    assert re.fullmatch(r"0::/((\.\./)*cay-[0-9a-f]+/b[a-z2-7]{26})? False", ran.document["stdout"].strip()), \
        ran.document["stdout"]


def test_a_namespace_inside_is_refused_and_told(run):
    code = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
print(libc.unshare(0x10000000), os.strerror(ctypes.get_errno()))
"""
    ran = run("-c", code)
    assert ran.document["stdout"] == "-1 Operation not permitted\n"
    assert "syscall_denied" in ran.flags
