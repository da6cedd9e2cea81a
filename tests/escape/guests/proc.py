# SPDX-License-Identifier: Apache-2.0
"""D072: reads all of /proc and /sys that can be read, and looks for the host in it.

The variable SECRETS has words of the host, one per line, that must stand nowhere."""

import json
import os

# About the asking process, made by cay, or known to everybody through system calls.
KNOWN = {"self", "thread-self", "mounts", "net", "uptime", "version", "filesystems",
         "cpuinfo", "meminfo", "stat", "loadavg", "sys"}
found = []
secrets = [word.encode() for word in os.environ["SECRETS"].splitlines() if word]


def read(path):
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return b""
    try:
        return os.read(fd, 1 << 20)
    except OSError:
        return b""
    finally:
        os.close(fd)


def look(path):
    text = read(path)
    for word in secrets:
        if word in text:
            found.append(f"{path} tells {word.decode()!r}")


if os.path.exists("/sys"):
    found.append("there is a /sys")
for name in os.listdir("/proc"):
    path = "/proc/" + name
    if name.isdigit():
        continue
    if name not in KNOWN:
        if os.path.isdir(path) and os.listdir(path) or read(path):
            found.append(f"{path} is not empty")
    elif not os.path.isdir(path):
        look(path)
for top in ("/proc/sys", "/proc/self/net", "/etc"):
    for folder, _, names in os.walk(top):
        for name in names:
            look(os.path.join(folder, name))
for name in ("mountinfo", "mounts", "cgroup", "status", "cmdline", "maps", "uid_map"):
    look("/proc/self/" + name)
print(json.dumps({"probe": "D072", "ok": not found, "detail": found[:20]}))
raise SystemExit(1 if found else 0)
