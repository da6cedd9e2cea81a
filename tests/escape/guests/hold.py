# SPDX-License-Identifier: Apache-2.0
"""D015-D017: does in one sandbox what another must not notice.

ROLE=a takes a lock on a shared file, watches a shared folder, leaves a file in /dev/shm, says
"ready", waits for a line, and tells what it noticed.  ROLE=b does what a would notice."""

import ctypes
import fcntl
import json
import os
import select
import sys

LOCKED = "/usr/bin/env"
libc = ctypes.CDLL(None, use_errno=True)
bad = []


def play_a():
    file = open(LOCKED)
    fcntl.flock(file, fcntl.LOCK_EX)
    watch = libc.inotify_init()
    for folder in (b"/usr/bin", b"/usr/bin/env", b"/usr", b"/dev", b"/dev/null", b"/etc"):
        # IN_OPEN and IN_ACCESS, which nobody here does while we wait.
        libc.inotify_add_watch(watch, folder, 0x21)
    with open("/dev/shm/x", "w") as mark:
        mark.write("a")
    with open("/tmp/x", "w") as mark:
        mark.write("a")
    print("ready", flush=True)
    sys.stdin.readline()
    if select.select([watch], [], [], 0)[0]:
        events = os.read(watch, 65536)
        if not shared_devices_only(events):
            bad.append("the other sandbox was noticed")


def shared_devices_only(events):
    """As an ordinary user the device nodes are the host's: a documented channel."""
    if os.environ.get("SHARED_DEVICES") != "1":
        return False
    at, names = 0, set()
    while at < len(events):
        wd = int.from_bytes(events[at:at + 4], "little")
        names.add(wd)
        at += 16 + int.from_bytes(events[at + 12:at + 16], "little")
    return names <= {4, 5}  # /dev, /dev/null


def play_b():
    with open(LOCKED) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            bad.append("the lock of the other sandbox holds here")
        file.buffer.read(64)
    os.listdir("/usr/bin")
    open("/dev/null").close()
    open("/etc/passwd").close()
    for path in ("/dev/shm", "/tmp"):
        left = [name for name in os.listdir(path) if name != "code"]  # our own program
        if left:
            bad.append(f"{path} has {left}")


play_a() if os.environ["ROLE"] == "a" else play_b()
print(json.dumps({"probe": "D016", "ok": not bad, "detail": bad}))
raise SystemExit(1 if bad else 0)
