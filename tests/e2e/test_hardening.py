# SPDX-License-Identifier: Apache-2.0
"""What an attacker once got, and must not get again."""
import json
import resource
import time

import pytest

INOTIFY = """
import ctypes
libc = ctypes.CDLL(None); n = 0
while libc.inotify_init1(0) >= 0: n += 1
print(n)
"""

SOCKETS = """
import socket
server = socket.socket(); server.bind(("127.0.0.1", 0)); server.listen(100)
total, kept = 0, []
for _ in range(100):
    client = socket.create_connection(server.getsockname()); kept += [client, server.accept()[0]]
    client.setblocking(False)
    try:
        while True: total += client.send(b"x" * 65536)
    except BlockingIOError: pass
print(total >> 20)
"""

MEMORY_FILES = """
import os, time
kept = []
for _ in range(8):
    fd = os.memfd_create("x"); kept.append(fd)
    for _ in range(32): os.write(fd, b"x" * (1 << 20))
time.sleep(2)
print("held")
"""

DELETED_FILES = """
import os, time
kept = []
for _ in range(40):
    f = open("/workspace/u", "wb"); os.unlink("/workspace/u"); kept.append(f)
    f.write(b"x" * (4 << 20)); f.flush(); time.sleep(0.1)
print("held")
"""

DIRECT_WRITE = """
import mmap, os
block = mmap.mmap(-1, 1 << 20)
fd = os.open("/workspace/d", os.O_WRONLY | os.O_CREAT | os.O_DIRECT)
for _ in range(32): os.write(fd, block)
"""


def test_inotify_of_the_host_is_not_used_up(cay):
    done = cay("run", "-c", INOTIFY)
    assert done.code == 0 and int(done.out) <= 16, done


def test_buffers_of_sockets_are_memory(cay):
    said = cay("run", "--json", "--memory", "64M", "-c", SOCKETS).document
    if said["limits"]["memory_bytes"]["enforced_by"] == "watcher":
        pytest.skip("nothing counts sockets without a cgroup")
    assert said["cause"] == "oom" or int(said["stdout"]) <= 80, said


def test_memory_files_are_memory(cay):
    said = cay("run", "--json", "--memory", "64M", "-c", MEMORY_FILES).document
    assert said["cause"] == "oom" and "held" not in said["stdout"], said


def test_deleted_files_fill_the_workspace(cay):
    done = cay("run", "--json", "--disk", "16M", "-c", DELETED_FILES)
    assert "held" not in done.document["stdout"] and "disk" in done.flags, done


@pytest.mark.parametrize("what", ["/:ro", "/etc:ro", "/proc:ro", "/usr:ro", "/sys:ro"])
def test_the_systems_directories_are_no_workspace(cay, what):
    done = cay("run", "--workspace", what, "--", "/bin/true")
    assert done.code == 125 and "cannot be a workspace" in done.said, done


def test_the_state_directory_is_never_shown(cay):
    assert cay("run", "--", "/bin/true").code == 0  # makes the key
    for args in (["--workspace", f"{cay.state}:ro"], ["--workspace", f"{cay.state}/keys:rw"],
                 ["--image", cay.state], ["--in", f"{cay.state}/keys/receipt.key"]):
        done = cay("run", *args, "--", "/bin/true")
        assert done.code == 125 and "state directory" in done.said, (args, done)


def test_fewer_open_files_than_the_profile_are_enough(cay):
    def fewer():
        resource.setrlimit(resource.RLIMIT_NOFILE, (512, 512))

    done = cay("run", "--", "sh", "-c", "ulimit -n", preexec_fn=fewer)
    assert done.code == 0 and int(done.out) <= 512, done


def test_a_variable_does_not_give_two_runs_the_same_uids(cay):
    (cay.folder / "runtime").mkdir(mode=0o700)
    cay.own(cay.folder / "runtime")
    first = cay.start("run", "--json", "--", "sleep", "3")
    time.sleep(1)
    second = cay("run", "--json", "--", "/bin/true", env={"XDG_RUNTIME_DIR": str(cay.folder / "runtime")})
    first = json.loads(first.communicate(timeout=60)[0])
    if first["isolation"]["uid_count"] == 1:
        pytest.skip("this user has one uid")
    assert first["isolation"]["uid_base"] != second.document["isolation"]["uid_base"]


def test_writing_past_the_page_cache_is_counted(cay):
    said = cay("run", "--json", "-c", DIRECT_WRITE).document
    if said["limits"]["io_bytes_per_s"]["enforced_by"] == "none":
        pytest.skip("no cgroup holds the I/O here")
    assert said["usage"]["io_write_bytes"] >= 32 << 20, said["usage"]
