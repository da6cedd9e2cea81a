# SPDX-License-Identifier: Apache-2.0
"""What the tests share: `cay run` as a call, and a look at the machine before and after each."""
import dataclasses
import json
import os
import re
import subprocess
import sys
import time

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", ".."))
import leakcheck  # noqa: E402

CAY = os.environ["CAY"]
# How much slower than a machine of its own the guest is: without KVM, several times.
SLOW = float(os.environ.get("CAY_TEST_SLOW", "1"))
KEPT = re.compile(r"/pool/ext4-\d+-\d+$")


@dataclasses.dataclass
class Ran:
    code: int
    document: dict
    stderr: str
    seconds: float

    @property
    def cause(self):
        return self.document["cause"]

    @property
    def flags(self):
        return {flag["name"]: flag for flag in self.document["flags"]}

    @property
    def usage(self):
        return self.document["usage"]

    def enforced_by(self, limit):
        return self.document["limits"][limit]["enforced_by"]


@pytest.fixture(scope="session")
def role():
    """root or user: as whom the suite runs this time."""
    return os.environ["CAY_TEST_ROLE"]


@pytest.fixture(scope="session")
def slow():
    return SLOW


@pytest.fixture(scope="session")
def state():
    return os.environ["CAY_STATE"]


@pytest.fixture
def cay():
    """Runs a command of cay's and gives the finished process, whatever its exit code."""
    def call(*arguments, **more):
        return subprocess.run([CAY, *arguments], capture_output=True, text=True,
                              timeout=45 * SLOW, stdin=subprocess.DEVNULL, **more)
    return call


@pytest.fixture
def run(cay):
    """cay run --json ARGUMENTS; the document is checked to be one and to be whole."""
    def call(*arguments, **more):
        begin = time.monotonic()
        done = cay("run", "--json", *arguments, **more)
        seconds = time.monotonic() - begin
        try:
            document = json.loads(done.stdout)
        except ValueError:
            pytest.fail(f"no JSON (exit code {done.returncode}): {done.stdout!r} {done.stderr!r}")
        return Ran(done.returncode, document, done.stderr, seconds)
    return call


def look():
    """The machine as it is.  The empty file systems that cay keeps to copy are no leak."""
    seen = leakcheck.snapshot([os.environ["CAY_STATE"]])
    runs = seen["run directory"]
    seen["run directory"] = {path: runs[path] for path in runs if not KEPT.search(path)}
    return seen


def what_is_left(before, seconds):
    """Waits until nothing is left behind, or until the time is over; the rest as lines."""
    end = time.monotonic() + seconds
    while True:
        lines = leakcheck.differences(before, look())
        if not lines or time.monotonic() > end:
            return lines
        time.sleep(0.05)


@pytest.fixture(scope="session")
def first_run():
    """What the first run on a machine makes for good: the state directory and its like."""
    subprocess.run([CAY, "run", "--", "/bin/true"], check=True, timeout=45 * SLOW)


@pytest.fixture(autouse=True)
def nothing_left(first_run):
    """One second after a test the machine is as before it."""
    before = look()
    yield before
    lines = what_is_left(before, 1.0 * SLOW)
    assert not lines, "\n".join(lines)
