#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Looks at the machine before and after a suite: zero difference is the only pass.

    leakcheck.py before FILE [STATE_DIR...]    writes what is there now
    leakcheck.py after FILE                    compares; a line per thing left behind or lost

Compared: mounts, cgroups named cay-*, namespaces (held by a process or an open descriptor),
loop devices, network interfaces, runs/ of the state directories, /dev/shm, System V objects,
and cay's things in /tmp; and processes, of which those count that are ours: in a namespace that
is not the machine's, running a program of cay's, or started under the suite (LEAKCHECK_TOKEN in
their environment).  What somebody else on this machine runs at the same time is not ours: a
process with a living parent that has no token.  What is on its way out gets three seconds, so
that a process that has just been killed is no finding.

As an ordinary user it sees the processes of that user only.
"""

import glob
import json
import os
import re
import sys
import time

GRACE_S = 3.0
NAMESPACES = ("cgroup", "ipc", "mnt", "net", "pid", "time", "user", "uts")
NAMESPACE_LINK = re.compile(r"^(cgroup|ipc|mnt|net|pid|time|user|uts):\[\d+\]$")
OUR_NAMES = re.compile(r"^(cay|cay-[a-z]+)$")


def text(path):
    """The whole file, or '' when it or its process is gone or not ours to read."""
    try:
        with open(path, "rb") as f:
            return f.read().decode("utf-8", "backslashreplace")
    except OSError:
        return ""


def link(path):
    try:
        return os.readlink(path)
    except OSError:
        return ""


def pids():
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def namespaces_of(pid):
    return {link(f"/proc/{pid}/ns/{kind}") for kind in NAMESPACES} - {""}


def namespaces():
    found = {}
    for pid in pids():
        held = namespaces_of(pid)
        try:
            held |= {link(e.path) for e in os.scandir(f"/proc/{pid}/fd")}
        except OSError:
            pass
        held = {name for name in held if NAMESPACE_LINK.match(name)} - found.keys()
        if held and not is_foreign(pid):
            found.update({name: f"held by {pid} {comm(pid)}" for name in held})
    return found


def stat_fields(pid):
    """Fields of /proc/PID/stat after the name, which may hold spaces and brackets."""
    return text(f"/proc/{pid}/stat").rpartition(")")[2].split()


def parent(pid):
    fields = stat_fields(pid)
    return int(fields[1]) if len(fields) > 1 else 0


def comm(pid):
    return text(f"/proc/{pid}/comm").strip()


def has_our_name(pid):
    exe = os.path.basename(link(f"/proc/{pid}/exe")).replace(" (deleted)", "")
    return bool(OUR_NAMES.match(exe.removeprefix("memfd:")) or OUR_NAMES.match(comm(pid)))


def has_token(pid):
    token = os.environ.get("LEAKCHECK_TOKEN", "")
    return bool(token) and f"LEAKCHECK_TOKEN={token}\0" in text(f"/proc/{pid}/environ")


def is_foreign(pid):
    """Somebody else's run: above it is a living process that is neither of cay nor of our suite.

    An orphan has none: whoever adopts orphans does not count.  `cay` itself has the token when it
    is the suite's."""
    while pid > 1 and not has_token(pid):
        outside = namespaces_of(pid) <= HOST_NAMESPACES and not has_our_name(pid)
        if outside and comm(pid) != "systemd" or comm(pid) == "cay":
            return pid not in ANCESTORS
        pid = parent(pid)
    return False


def is_ours(pid):
    if has_token(pid):
        return True
    inside = not namespaces_of(pid) <= HOST_NAMESPACES
    return (inside or has_our_name(pid)) and not is_foreign(pid)


def ancestors():
    """This process and those above it: the runner of the suite is no leak."""
    found, pid = set(), os.getpid()
    while pid > 0 and pid not in found:
        found.add(pid)
        pid = parent(pid)
    return found


HOST_NAMESPACES = namespaces_of(1) | namespaces_of("self")
ANCESTORS = ancestors()


def processes():
    found = {}
    for pid in pids():
        fields = stat_fields(pid)
        is_kernel_thread = pid == 2 or (len(fields) > 1 and fields[1] == "2")
        if pid in ANCESTORS or len(fields) < 20 or is_kernel_thread or not is_ours(pid):
            continue
        command = text(f"/proc/{pid}/cmdline").replace("\0", " ").replace("\n", " ").strip()
        found[f"{pid} started {fields[19]}"] = (
            f"state {fields[0]}, parent {fields[1]}, {command[:120] or comm(pid)}"
        )
    return found


def mounts():
    found = {}
    for line in text("/proc/self/mountinfo").splitlines():
        left, _, right = line.partition(" - ")
        where = left.split()[3:5]
        key = f"{where[1]} ({' '.join(right.split()[:2])}, root {where[0]})"
        found[key] = found.get(key, 0) + 1
    return {f"{key} x{n}": "" for key, n in found.items()}


def cgroups():
    found = {}
    for top, _, files in os.walk("/sys/fs/cgroup"):
        if "/cay-" not in top or "cgroup.procs" not in files:
            continue
        inside = [int(pid) for path, _, _ in os.walk(top)
                  for pid in text(os.path.join(path, "cgroup.procs")).split()]
        if not any(is_foreign(pid) for pid in inside):
            found[top] = f"with {len(inside)} processes"
    return found


def listing(pattern):
    return {path: "" for path in glob.glob(pattern)}


def sysv():
    found = {}
    for kind in ("shm", "sem", "msg"):
        for line in text(f"/proc/sysvipc/{kind}").splitlines()[1:]:
            found[f"{kind} id {line.split()[1]}"] = ""
    return found


def loops():
    return {
        path: text(path).strip() for path in glob.glob("/sys/block/loop*/loop/backing_file")
    }


def snapshot(state_dirs):
    seen = {
        "process": processes(),
        "namespace": namespaces(),
        "mount": mounts(),
        "cgroup": cgroups(),
        "loop device": loops(),
        "network interface": listing("/sys/class/net/*"),
        "shared memory": listing("/dev/shm/*"),
        "System V object": sysv(),
        "leftover": listing("/tmp/cay-[a-z]*"),
        "run directory": {},
    }
    for state in state_dirs:
        seen["run directory"].update(listing(os.path.join(state, "runs", "*")))
    return seen


def differences(before, now):
    lines = []
    for kind, things in now.items():
        old = before.get(kind, {})
        lines += [f"left behind: {kind} {k} {v}".rstrip() for k, v in things.items() if k not in old]
        # The rest may end while a suite runs, or be swept by it.
        if kind in ("mount", "network interface", "shared memory", "System V object"):
            lines += [f"lost: {kind} {k} {v}".rstrip() for k, v in old.items() if k not in things]
    return lines


def before(path, state_dirs):
    with open(path, "w", encoding="utf-8") as f:
        json.dump({"state_dirs": state_dirs, "seen": snapshot(state_dirs)}, f)
    return 0


def after(path):
    with open(path, encoding="utf-8") as f:
        saved = json.load(f)
    end = time.monotonic() + GRACE_S
    while True:
        lines = differences(saved["seen"], snapshot(saved["state_dirs"]))
        if not lines or time.monotonic() > end:
            break
        time.sleep(0.2)
    for line in lines:
        print(line)
    print(f"leak check: {len(lines)} differences")
    return 1 if lines else 0


def main(argv):
    if len(argv) >= 3 and argv[1] == "before":
        return before(argv[2], argv[3:])
    if len(argv) == 3 and argv[1] == "after":
        return after(argv[2])
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv))
