# SPDX-License-Identifier: Apache-2.0
"""How the tests run `cay`, and what they read of its answer.

CAY is the program under test (default build/cay), CAY_BUILD the build it is from, CAY_SWITCH a
build with switches for layers.  Everything runs as whoever runs the tests."""

import functools
import json
import os
import pathlib
import subprocess
import time

HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parent.parent
BUILD = pathlib.Path(os.environ.get("CAY_BUILD", TOP / "build"))
CAY = os.environ.get("CAY", str(BUILD / "cay"))
GUEST = BUILD / "tests" / "escape" / "guest"
CANARY = BUILD / "tests" / "escape" / "canary.so"
IS_ROOT = os.geteuid() == 0


class Answer:
    """What came of one run."""

    def __init__(self, code, out, err, seconds, max_rss_kib=0):
        self.code, self.out, self.err = code, out, err
        self.seconds, self.max_rss_kib = seconds, max_rss_kib

    @property
    def text(self):
        return self.out.decode("utf-8", "replace")

    @functools.cached_property
    def document(self):
        return json.loads(self.out)

    @property
    def cause(self):
        return self.document["cause"]

    @property
    def stdout(self):
        """The program's own, of a document."""
        return self.document["stdout"]

    @property
    def denied(self):
        return {call["name"]: call["times"] for call in self.document["denied_system_calls"]}

    @property
    def flags(self):
        return {flag["name"]: flag for flag in self.document["flags"]}

    def __repr__(self):
        return (f"<exit code {self.code} after {self.seconds:.2f} s\nstdout: {self.out[-3000:]!r}\n"
                f"stderr: {self.err[-3000:]!r}>")


def command(*args, cay=CAY):
    return [str(cay), "run", *[arg if isinstance(arg, bytes) else str(arg) for arg in args]]


def run(*args, cwd=None, stdin=b"", timeout=60, env=None, cay=CAY, fds=()):
    """One `cay run`; stdin may be bytes or a file."""
    start = time.monotonic()
    given = {"input": stdin} if isinstance(stdin, bytes) else {"stdin": stdin}
    process = subprocess.run(command(*args, cay=cay), cwd=cwd, capture_output=True, timeout=timeout,
                             env={**os.environ, **(env or {})}, pass_fds=fds, check=False, **given)
    return Answer(process.returncode, process.stdout, process.stderr, time.monotonic() - start)


def guest(probe, *args, flags=(), **more):
    """The C guest with one probe."""
    return run(*flags, "--in", GUEST, "--", "/workspace/input/guest", probe, *args, **more)


def python(name, *flags, **more):
    """A Python guest."""
    return run(*flags, "--lang", "python", HERE / "guests" / name, **more)


def verdict(answer):
    """The guest's own line, which is the last one."""
    lines = answer.out.strip().splitlines()
    return json.loads(lines[-1]) if lines and lines[-1].startswith(b"{") else None


def held(answer):
    """Every attempt of the guest was refused, and it lived to say so."""
    said = verdict(answer)
    assert said is not None, answer
    assert said["ok"], said["detail"]
    assert answer.code == 0, answer


def start(*args, cwd=None, stdin=subprocess.PIPE, env=None):
    """A run that goes on; its first line of output has been read."""
    process = subprocess.Popen(command(*args), cwd=cwd, stdin=stdin, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, env={**os.environ, **(env or {})})
    line = process.stdout.readline()
    if b"ready" not in line:
        process.kill()
        raise AssertionError((line, process.stderr.read()))
    return process


def processes_with(token):
    """The host's processes whose command line has that word; not ours, and not cay's own."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if token.encode() in words and b"run" not in words:
            found.append(int(entry.name))
    return found


def wait_gone(token, seconds=1.0):
    end = time.monotonic() + seconds
    while processes_with(token) and time.monotonic() < end:
        time.sleep(0.02)
    return processes_with(token)
