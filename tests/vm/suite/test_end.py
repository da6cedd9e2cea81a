# SPDX-License-Identifier: Apache-2.0
"""However a run ends, nothing is left of it.  (Each test is followed by a look at the machine.)"""
import concurrent.futures
import os
import signal
import subprocess
import time

import pytest
from conftest import CAY, what_is_left

CLING = """
import os, signal, sys, time
for s in (1, 2, 15):
    signal.signal(s, signal.SIG_IGN)
for _ in range(4):
    if os.fork() == 0:
        os.setsid()
        for f in range(3): os.close(f)
        if os.fork() == 0:
            while True: time.sleep(1)
        os._exit(0)
open('/tmp/x', 'w').write('x'); open('/workspace/x', 'w').write('x')
print('ready', flush=True)
%s
"""


@pytest.fixture
def clinging():
    """A run of cay's whose children do their best to stay; started and ready."""
    child = subprocess.Popen([CAY, "run", "--timeout", "100s", "-c", CLING % "time.sleep(90)"],
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                             start_new_session=True)
    assert child.stdout.readline() == "ready\n"
    yield child
    if child.poll() is None:
        child.kill()
    child.wait()
    child.stdout.close()


def test_background_children_end_with_the_program(run, nothing_left, slow):
    ran = run("-c", CLING % "sys.exit(0)")
    assert ran.code == 0
    assert not what_is_left(nothing_left, 1 * slow)


def test_children_end_at_the_timeout(run, nothing_left, slow):
    ran = run("--timeout", "2s", "-c", CLING % "time.sleep(90)")
    assert ran.code == 124
    assert not what_is_left(nothing_left, 1 * slow)


@pytest.mark.parametrize("how", ["SIGTERM", "SIGHUP", "SIGKILL"])
def test_a_signal_to_cay_ends_everything(clinging, nothing_left, slow, how):
    clinging.send_signal(getattr(signal, how))
    clinging.wait(timeout=5 * slow)
    lines = what_is_left(nothing_left, 1 * slow)
    assert not lines, "\n".join(lines)


def test_an_interrupt_twice_ends_everything(clinging, nothing_left, slow):
    clinging.send_signal(signal.SIGINT)
    time.sleep(0.3 * slow)
    assert clinging.poll() is None
    clinging.send_signal(signal.SIGINT)
    clinging.wait(timeout=5 * slow)
    assert not what_is_left(nothing_left, 1 * slow)


def children_of(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return [int(word) for word in file.read().split()]


def test_the_next_start_sweeps_what_two_kills_left(clinging, cay, nothing_left, slow):
    wardens = children_of(clinging.pid)
    assert wardens
    os.kill(clinging.pid, signal.SIGSTOP)
    for pid in wardens:
        os.kill(pid, signal.SIGKILL)
    os.kill(clinging.pid, signal.SIGKILL)
    clinging.wait(timeout=5 * slow)
    processes = [line for line in what_is_left(nothing_left, 1 * slow)
                 if line.startswith("left behind: process")]
    assert not processes, "\n".join(processes)
    assert cay("run", "--", "/bin/true").returncode == 0
    lines = what_is_left(nothing_left, 1 * slow)
    assert not lines, "\n".join(lines)


def test_runs_at_the_same_time_do_not_disturb_each_other(cay):
    """They share one cgroup, which goes with the last of them and comes again with the next."""
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        all_done = list(pool.map(lambda n: cay("run", "--", "/bin/sh", "-c", f"exit {n}"),
                                 range(40, 72)))
    assert [done.returncode for done in all_done] == list(range(40, 72)), \
        {done.stderr for done in all_done if done.stderr}
