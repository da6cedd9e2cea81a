# SPDX-License-Identifier: Apache-2.0
"""D101-D118: taking until something says no."""

import os
import resource
import shutil
import subprocess
import threading
import time

import pytest

import jail

MIB = 1 << 20
CGROUPS = ("cgroup1", "cgroup2")


def by(facts, limit):
    return facts["limits"][limit]["enforced_by"]


@pytest.mark.parametrize("processes", [1, 50])
def test_D101_twice_the_memory_is_not_to_be_had(folder, facts, processes):
    answer = jail.guest("D101", 256, processes, flags=["--memory", "128M", "--pids", "100", "--json"], timeout=30)
    if by(facts, "memory_bytes") in CGROUPS:
        assert answer.cause == "oom", answer
        assert answer.document["usage"]["peak_memory_bytes"] <= 130 * MIB
    elif answer.cause != "oom":
        # One process meets its rlimit; then the guest itself says that there was no more.
        assert processes == 1 and answer.code == 0, answer
    assert answer.seconds < 8, answer


def test_D103_the_agent_is_never_the_victim(folder, facts):
    answer = jail.guest("D103", 256, 20, flags=["--memory", "128M", "--json", "--timeout", "60s"], timeout=90)
    if by(facts, "memory_bytes") in CGROUPS:
        assert answer.code == 0, answer
        assert answer.cause == "oom", answer
        assert answer.document["usage"]["oom_kills"] >= 20
    else:
        assert answer.cause in ("oom", "exited"), answer


def test_D101_tmpfs_counts_as_memory(folder, facts):
    if by(facts, "memory_bytes") not in CGROUPS:
        pytest.skip("without a cgroup only the size of the tmpfs holds")
    answer = jail.run("--memory", "32M", "--json", "--", "/bin/sh", "-c", "head -c 60M /dev/zero > /tmp/x; echo $?")
    assert answer.cause == "oom" or "No space left" in str(answer.document), answer


def test_D105_threads_get_no_more_than_the_quota(folder, facts):
    if by(facts, "cpu_millis") not in CGROUPS:
        pytest.skip("the processor's share is not enforced here, and the receipt says so")
    answer = jail.guest("D105", 64, 2000, flags=["--cpus", "0.5", "--json"], timeout=30)
    usage = answer.document["usage"]
    assert answer.code == 0, answer
    assert usage["cpu_ms"] <= 0.5 * usage["wall_ms"] * 1.15 + 100, usage


def test_D105_a_neighbour_still_runs(folder):
    busy = threading.Thread(target=jail.guest, args=("D105", 64, 3000), kwargs={"timeout": 30})
    busy.start()
    time.sleep(0.3)
    times = [jail.run("--", "/bin/true").seconds for _ in range(10)]
    busy.join()
    assert sorted(times)[5] < 1, times


def test_D106_processor_time_counts_children(folder):
    answer = jail.guest("D106", 10000, flags=["--cpu-time", "1s", "--timeout", "20s", "--json"], timeout=40)
    assert answer.cause == "cpu_time", answer
    assert answer.code == 124
    assert answer.seconds < 6, answer


def test_D107_the_workspace_has_its_size(folder, facts):
    before = shutil.disk_usage(os.environ["CAY_STATE"]).free
    answer = jail.guest("D107", "/workspace", 48, flags=["--disk", "16M", "--json", "--timeout", "30s"], timeout=60)
    watched = by(facts, "disk_bytes") == "watcher"
    if not watched:
        assert answer.code == 0, answer
    assert "disk" in answer.flags or answer.cause != "exited", answer
    assert before - shutil.disk_usage(os.environ["CAY_STATE"]).free < 64 * MIB


@pytest.mark.parametrize("place, mib", [("/tmp", 128), ("/dev/shm", 96)])
def test_D107_memory_file_systems_have_their_size(folder, place, mib):
    jail.held(jail.guest("D107", place, mib))


def test_D108_a_huge_empty_file_fills_nobodys_disk(folder):
    answer = jail.guest("D108", flags=["--disk", "16M"], timeout=30)
    assert answer.seconds < 10, answer
    size = sum(path.stat().st_blocks * 512 for path in folder.iterdir())
    assert size < 32 * MIB


def test_D109_files_are_counted(folder, facts):
    answer = jail.guest("D109", "/workspace", 60000, flags=["--profile", "tiny", "--timeout", "60s", "--json"], timeout=90)
    if by(facts, "disk_files") in ("none", "watcher"):
        assert answer.code == 0 or answer.cause != "exited" or "disk" in answer.flags, answer
    else:
        assert answer.code == 0, answer
    assert answer.seconds < 60


def test_D110_a_deep_tree_is_removed(folder):
    answer = jail.guest("D110", 5000, timeout=60)
    assert verdict_ok(answer), answer
    assert answer.seconds < 20
    left = os.listdir(os.path.join(os.environ["CAY_STATE"], "runs"))
    assert [name for name in left if not name.startswith(".")] == [], left


def verdict_ok(answer):
    said = jail.verdict(answer)
    return said is not None and said["ok"]


def test_D111_open_files_are_counted(folder):
    jail.held(jail.guest("D111", 64, flags=["--open-files", "64"]))


def test_D112_output_is_cut_not_kept(folder):
    usage = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    answer = jail.guest("D112", 256, flags=["--output", "64K", "--json"], timeout=60)
    assert answer.code == 0, answer
    assert "output_truncated" in answer.flags, answer
    assert len(answer.out) < 256 * 1024
    grown = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    assert grown <= max(usage, 64 * 1024), f"{grown} KiB"


def test_D112_random_bytes_make_a_valid_document(folder):
    answer = jail.run("--json", "--output", "64K", "--", "/usr/bin/head", "-c", "2M", "/dev/urandom")
    assert answer.code == 0 and "output_truncated" in answer.flags, answer


def test_D113_a_reader_that_stops_does_not_keep_us(folder):
    process = subprocess.Popen(jail.command("--timeout", "2s", "--", "/usr/bin/yes"), stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL)
    try:
        time.sleep(1)
        with open(f"/proc/{process.pid}/status") as file:
            rss = next(int(line.split()[1]) for line in file if line.startswith("VmRSS"))
        assert rss < 64 * 1024
        assert process.wait(timeout=10) == 124
    finally:
        process.stdout.close()
        process.kill()


def test_D114_stdin_that_is_never_read_or_never_ends(folder):
    with open("/dev/zero", "rb") as zero:
        answer = jail.run("--timeout", "1s", "--", "/bin/sleep", "30", stdin=zero, timeout=20)
    assert answer.code == 124 and answer.seconds < 4, answer
    read, write = os.pipe()
    try:
        with open(read, "rb") as never:
            answer = jail.run("--timeout", "1s", "--", "/bin/cat", stdin=never, timeout=20)
    finally:
        os.close(write)
    assert answer.code == 124 and answer.seconds < 4, answer


def test_D114_much_stdin_arrives_whole(folder):
    data = os.urandom(8 * MIB)
    answer = jail.run("--", "/usr/bin/wc", "-c", stdin=data, timeout=30)
    assert answer.text.strip() == str(len(data)), answer


def test_D118_terminals_are_counted(folder):
    jail.held(jail.guest("D118", 64))


def test_D104_a_writer_does_not_stall_a_neighbour(folder):
    script = "for i in 1 2 3 4 5 6; do head -c 40M /dev/zero > /workspace/x; rm /workspace/x; done"
    busy = threading.Thread(target=jail.run, args=("--disk", "64M", "--", "/bin/sh", "-c", script),
                            kwargs={"timeout": 60})
    busy.start()
    times = [jail.run("--", "/bin/true").seconds for _ in range(10)]
    busy.join()
    assert sorted(times)[5] < 1, times
