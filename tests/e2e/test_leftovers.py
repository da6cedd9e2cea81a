# SPDX-License-Identifier: Apache-2.0
"""Nothing survives a run, however it ends: no process, mount, cgroup, namespace, loop device or
run directory."""
import os
import signal
import subprocess
import time

import pytest

from traces import SWEPT, Traces, adopt_orphans, descriptors, runs_of
import leakcheck

adopt_orphans()

# Children that nobody waits for, in every way to get away: each says when it is there.
STUBBORN = """
import os, signal, sys, threading, time
here, there = os.pipe()
def ignore():
    for number in range(1, 65):
        try: signal.signal(number, signal.SIG_IGN)
        except (OSError, ValueError): pass
def stay():
    os.write(there, b'.')
    while True: time.sleep(100)
def child(*steps):
    if os.fork(): return
    for step in steps:
        step()
    stay()
def fork_again():
    if os.fork(): os._exit(0)
def close_all():
    os.dup2(os.open('/dev/null', os.O_RDWR), 0); os.dup2(0, 1); os.dup2(0, 2)
def start_threads():
    for _ in range(5): threading.Thread(target=time.sleep, args=(100,), daemon=True).start()
def stop():
    os.write(there, b'.'); os.kill(os.getpid(), signal.SIGSTOP)
kinds = [(), (os.setsid,), (fork_again, os.setsid, fork_again), (ignore, os.setsid),
         (close_all, os.setsid, fork_again), (start_threads,), (stop,)]
for kind in kinds: child(*kind)
for _ in kinds: os.read(here, 1)
%s
print('ready', flush=True)
%s
"""
IGNORE = "ignore()"
SLEEP = "time.sleep(100)"
KILL = signal.SIGKILL


def stubborn(before="", after=SLEEP):
    return STUBBORN % (before, after)


started = []


@pytest.fixture(autouse=True)
def no_test_is_in_the_way_of_the_next(cay):
    yield
    while started:
        process = started.pop()
        process.kill()
        process.wait(timeout=60)
        close(process)
    if runs_of(cay.state):  # a test that failed
        time.sleep(1)
        cay.run("--", "true")


def begin(cay, *args):
    started.append(cay.start("run", *args, stdin=subprocess.PIPE))
    return started[-1]


def start(cay, code, *flags):
    """A run whose program is ready, and its traces."""
    known = runs_of(cay.state)
    process = begin(cay, "--timeout", "90s", *flags, "-c", code)
    assert process.stdout.readline() == b"ready\n", process.communicate()
    traces = Traces(process.pid, cay.state, known)
    # cay, warden, launcher, agent, program and seven children
    assert len(traces.processes) >= 12, traces.processes
    assert traces.namespaces and len(traces.runs) == 1
    return process, traces


def close(process):
    for stream in (process.stdin, process.stdout, process.stderr):
        stream.close()


def gone_after(process, traces, but=()):
    """Reaps cay itself, which is our child; then nothing may be left."""
    process.wait(timeout=60)
    left = traces.wait_gone(but)
    close(process)
    assert not left, left


def warden_of(traces):
    return traces.descendants("cay-warden")


def test_the_program_ends_by_itself(cay):
    process, traces = start(cay, stubborn(after="input(); sys.exit(3)"))
    process.stdin.write(b"\n")
    process.stdin.flush()
    gone_after(process, traces)
    assert process.returncode == 3


def test_a_timeout(cay):
    process, traces = start(cay, stubborn(IGNORE), "--timeout", "4s")
    gone_after(process, traces)
    assert process.returncode == 124


def test_an_interrupt(cay):
    process, traces = start(cay, stubborn())
    process.send_signal(signal.SIGINT)
    gone_after(process, traces)
    assert process.returncode == 130


def test_two_interrupts(cay):
    process, traces = start(cay, stubborn(IGNORE))
    process.send_signal(signal.SIGINT)
    time.sleep(0.3)
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    gone_after(process, traces)
    assert process.returncode == 130


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
def test_a_signal_to_cay(cay, number):
    process, traces = start(cay, stubborn(IGNORE))
    process.send_signal(number)
    gone_after(process, traces)
    assert process.returncode == 128 + number


def test_cay_is_killed(cay):
    process, traces = start(cay, stubborn(IGNORE))
    process.kill()
    gone_after(process, traces)


def test_cay_is_stopped_and_killed(cay):
    process, traces = start(cay, stubborn(IGNORE))
    process.send_signal(signal.SIGSTOP)
    process.kill()
    gone_after(process, traces)


def test_the_launcher_is_killed(cay):
    process, traces = start(cay, stubborn(IGNORE))
    os.kill(warden_of(traces)[1], KILL)
    gone_after(process, traces)
    assert process.returncode == 125


def test_the_agent_is_killed(cay):
    process, traces = start(cay, stubborn(IGNORE))
    agent = next(pid for pid in traces.processes
                 if leakcheck.parent(pid) == warden_of(traces)[1])
    os.kill(agent, KILL)
    gone_after(process, traces)
    assert process.returncode == 125


def sweep(cay, traces):
    """The next run takes away what only it can."""
    done = cay.run("--", "true")
    assert done.code == 0, done
    left = traces.wait_gone()
    assert not left, left


def test_the_warden_is_killed(cay):
    process, traces = start(cay, stubborn(IGNORE))
    os.kill(warden_of(traces)[0], KILL)
    gone_after(process, traces, SWEPT)
    assert process.returncode == 125
    sweep(cay, traces)


def test_cay_and_warden_are_killed(cay):
    process, traces = start(cay, stubborn(IGNORE))
    for pid in (process.pid, warden_of(traces)[0]):
        os.kill(pid, KILL)
    gone_after(process, traces, SWEPT)
    sweep(cay, traces)


def test_all_of_cay_is_killed_at_once(cay):
    process, traces = start(cay, stubborn(IGNORE))
    for pid in (process.pid, *warden_of(traces)):
        os.kill(pid, signal.SIGSTOP)
    for pid in (process.pid, *warden_of(traces)):
        os.kill(pid, KILL)
    gone_after(process, traces, SWEPT)
    sweep(cay, traces)


@pytest.mark.parametrize("milliseconds", [1, 3, 6, 10, 15, 25, 50])
def test_killed_while_it_is_being_made(cay, milliseconds):
    cay.run("--", "true")
    known = runs_of(cay.state)
    process = begin(cay, "--", "sleep", "100")
    time.sleep(milliseconds / 1000)
    traces = Traces(process.pid, cay.state, known)
    wardens = warden_of(traces)
    process.kill()
    for pid in wardens[:1]:
        os.kill(pid, KILL)
    gone_after(process, traces, SWEPT)
    sweep(cay, traces)


def test_the_sweep_leaves_a_living_run_alone(cay):
    ask = "for line in sys.stdin: print(line.upper(), end='', flush=True)\nos._exit(5)"
    living, life = start(cay, stubborn(after=ask))
    alive = [pid for pid in life.processes if leakcheck.stat_fields(pid)[:1] != ["Z"]]
    dead, traces = start(cay, stubborn(IGNORE))
    for pid in (dead.pid, warden_of(traces)[0]):
        os.kill(pid, KILL)
    gone_after(dead, traces, SWEPT)
    shared = [f"cgroup {path}" for path in life.cgroups]
    assert cay.run("--", "true").code == 0
    left = traces.wait_gone(shared)
    assert not left, left

    assert all(os.path.isdir(path) for path in (*life.runs, *life.cgroups))
    assert [pid for pid in alive if leakcheck.stat_fields(pid)[:1] in ([], ["Z"])] == []
    out, err = living.communicate(b"still there\n", timeout=60)
    assert (living.returncode, out) == (5, b"STILL THERE\n"), err
    assert not life.wait_gone()


def test_a_fork_bomb_is_gone(cay):
    bomb = ("print('ready', flush=True)\nimport os\n"
            "while True:\n try: os.fork()\n except OSError: pass")
    known = runs_of(cay.state)
    process = begin(cay, "--pids", "64", "--timeout", "3s", "-c", bomb)
    assert process.stdout.readline() == b"ready\n"
    time.sleep(1)
    traces = Traces(process.pid, cay.state, known)
    assert subprocess.run(["true"], timeout=30).returncode == 0
    gone_after(process, traces)
    assert process.returncode == 124


def test_many_children_are_gone_with_cay(cay):
    code = "import os, time\nfor _ in range(100):\n if os.fork() == 0: time.sleep(100)\n"
    process, traces = start(cay, code + "print('ready', flush=True)\ntime.sleep(100)")
    process.kill()
    gone_after(process, traces)


def zombies():
    """Dead processes of cay that nobody has reaped, and that are not somebody else's."""
    return {pid for pid in leakcheck.pids()
            if leakcheck.stat_fields(pid)[:1] == ["Z"] and leakcheck.has_our_name(pid)
            and leakcheck.parent(pid) in (1, os.getpid())}


def group_names(cay):
    """The cgroups that the runs of this state directory share; none without rights to any."""
    process = begin(cay, "-c", "print('ready', flush=True); input()")
    assert process.stdout.readline() == b"ready\n"
    traces = Traces(process.pid, cay.state)
    process.communicate(b"\n", timeout=60)
    return {part for path in traces.cgroups for part in path.split("/") if part.startswith("cay-")}


def counts(cay, groups):
    files = [path for path in cay.state.rglob("*") if "layers" not in path.parts]
    loops = [file for file in leakcheck.loops().values() if file.startswith(str(cay.state))]
    return {"descriptors": len(descriptors(os.getpid())), "files": len(files), "loops": len(loops),
            "cgroups": sum(groups & set(folder.split("/")) != set()
                           for folder, _, _ in os.walk("/sys/fs/cgroup")),
            "mounts": leakcheck.text("/proc/self/mountinfo").count(str(cay.state))}


def test_a_hundred_runs_leave_no_more_than_one(cay):
    count = "import os; print(len(os.listdir('/proc/self/fd')))"
    first = cay.run("-c", count)
    groups = group_names(cay)
    before, dead = counts(cay, groups), zombies()
    for n in range(100):
        assert cay.run("--", "true" if n % 2 else "false").code == (n + 1) % 2
    assert cay.run("-c", count).out == first.out
    assert counts(cay, groups) == before
    assert zombies() <= dead


def test_ten_at_once_leave_nothing(cay):
    running = [start(cay, stubborn(IGNORE)) for _ in range(10)]
    assert len({path for _, traces in running for path in traces.runs}) == 10
    for n, (process, _) in enumerate(running):
        process.send_signal([KILL, signal.SIGTERM, signal.SIGHUP][n % 3])
    for process, traces in running:
        gone_after(process, traces)
