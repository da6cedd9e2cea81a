# SPDX-License-Identifier: Apache-2.0
"""What one `cay run` has on the machine, looked at while it lives, and what of it is still there.

Everything is known by its identity (pid and start time, inode of a namespace or a cgroup, path of
a run directory), so that other runs on the same machine are never taken for this one."""
import ctypes
import os
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import leakcheck  # noqa: E402

SWEPT = ("cgroup", "run directory")  # what only a next run can take away when nobody is left


def grace():
    """One second is the promise; where others wait for the processor too, their share is added."""
    return max(1.0, os.getloadavg()[0] / os.cpu_count())


def hierarchies():
    """Mount point by the name that /proc/PID/cgroup gives: '' is version 2."""
    found = {}
    for line in leakcheck.text("/proc/self/mountinfo").splitlines():
        left, _, right = line.partition(" - ")
        where, kind, options = left.split()[4], right.split()[0], right.split()[2].split(",")
        if kind == "cgroup2":
            found.setdefault("", where)
        elif kind == "cgroup":
            for option in options:
                found.setdefault(option, where)
    return found


def cgroups_of(pid, mounts):
    """Directories of cay that the process is in, and those of cay above them."""
    found = {}
    for line in leakcheck.text(f"/proc/{pid}/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        where = mounts.get(controllers.split(",")[0])
        parts = path.strip("/").split("/")
        first = next((i for i, part in enumerate(parts) if part.startswith("cay-")), None)
        for end in range(len(parts), first or 0, -1) if where and first is not None else ():
            folder = os.path.join(where, *parts[:end])
            if os.path.isdir(folder):
                found[folder] = os.stat(folder).st_ino
    return found


def below(pid):
    """The process and all its descendants."""
    children = {}
    for other in leakcheck.pids():
        children.setdefault(leakcheck.parent(other), []).append(other)
    found, todo = [], [pid]
    while todo:
        found.append(todo.pop())
        todo += children.get(found[-1], [])
    return found


def start_time(pid):
    fields = leakcheck.stat_fields(pid)
    return fields[19] if len(fields) > 19 else None


def runs_of(state):
    runs = pathlib.Path(state) / "runs"
    return set(runs.iterdir()) if runs.is_dir() else set()


def adopt_orphans():
    """Who loses its parent comes to this process: when it is reaped then depends on nobody else."""
    PR_SET_CHILD_SUBREAPER = 36
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


class Traces:
    """Of the run whose `cay` has this pid; run directories in `known` are not its own."""

    def __init__(self, pid, state, known=()):
        self.pid = pid
        self.processes, self.namespaces, self.cgroups = {}, set(), {}
        self.runs = runs_of(state) - set(known)
        mounts = hierarchies()
        for pid in below(self.pid):
            self.processes[pid] = start_time(pid)
            self.namespaces |= leakcheck.namespaces_of(pid) - leakcheck.HOST_NAMESPACES
            self.cgroups.update(cgroups_of(pid, mounts))

    def descendants(self, name):
        """Pids of this run whose program has that name, in the order of their birth."""
        return [pid for pid in self.processes if leakcheck.comm(pid).startswith(name)]

    def reap(self):
        for pid in self.processes:
            if pid != self.pid:  # that one has its owner
                try:
                    os.waitpid(pid, os.WNOHANG)
                except ChildProcessError:
                    pass

    def left(self):
        """A line per thing that is still there."""
        self.reap()
        lines = [f"process {pid} {leakcheck.comm(pid)} {leakcheck.stat_fields(pid)[:1]}"
                 for pid, start in self.processes.items()
                 if start is not None and start_time(pid) == start]
        for pid in leakcheck.pids():
            held = leakcheck.namespaces_of(pid)
            held |= {leakcheck.link(f"/proc/{pid}/fd/{fd}") for fd in descriptors(pid)}
            if held & self.namespaces:
                lines.append(f"namespace {held & self.namespaces} by {pid} {leakcheck.comm(pid)}")
        lines += [f"cgroup {path}" for path, inode in self.cgroups.items()
                  if os.path.isdir(path) and os.stat(path).st_ino == inode]
        lines += [f"run directory {path}" for path in self.runs if path.exists()]
        mounts = leakcheck.text("/proc/self/mountinfo")
        lines += [f"mount of {path}" for path in self.runs if str(path) in mounts]
        lines += [f"loop device {device} {file}" for device, file in leakcheck.loops().items()
                  if any(file.startswith(f"{path}/") for path in self.runs)]
        return lines

    def wait_gone(self, but=()):
        """What is left when the time is over, except of some kinds."""
        end = time.monotonic() + grace()
        while True:
            lines = [line for line in self.left() if not line.startswith(tuple(but))]
            if not lines or time.monotonic() > end:
                return lines
            time.sleep(0.02)


def descriptors(pid):
    try:
        return os.listdir(f"/proc/{pid}/fd")
    except OSError:
        return []
