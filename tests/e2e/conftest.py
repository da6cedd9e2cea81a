# SPDX-License-Identifier: Apache-2.0
"""How the tests run `cay`.

CAY is the program under test (default build/cay).  Run as root with CAY_TEST_USER set, each test
that takes `cay` runs twice: as root and as that ordinary user, with a state directory each."""
import json
import os
import pathlib
import pwd
import shutil
import subprocess
import tempfile
import time

import pytest

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
os.environ.setdefault("CAY", str(TOP / "build" / "cay"))


def roles():
    user = os.environ.get("CAY_TEST_USER")
    return ["self", user] if user and os.geteuid() == 0 else ["self"]


class Answer:
    """What came of one run."""

    def __init__(self, code, out, err, seconds):
        self.code, self.out, self.err, self.seconds = code, out, err, seconds

    @property
    def said(self):
        return self.err.decode("utf-8", "replace")

    @property
    def document(self):
        return json.loads(self.out)

    @property
    def flags(self):
        return {flag["name"]: flag for flag in self.document["flags"]}

    def __repr__(self):
        return f"<exit code {self.code}, stdout {self.out[-2000:]!r}, stderr {self.err[-2000:]!r}>"


class Cay:
    """`cay` as one user, in a folder and with a state directory of its own."""

    def __init__(self, role, folder, state):
        self.folder, self.state = folder, state
        self.owner = None if role == "self" else pwd.getpwnam(role)
        self.own(folder)

    def own(self, path):
        if self.owner:
            os.chown(path, self.owner.pw_uid, self.owner.pw_gid)

    def write(self, name, text, mode=0o644):
        """A file in the current folder that its user may read."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        for parent in path.parents:
            if parent == self.folder:
                break
            self.own(parent)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        path.chmod(mode)
        self.own(path)
        return path

    def start(self, *args, env=None, **more):
        given = {**os.environ, "CAY_STATE": str(self.state), **(env or {})}
        streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE,
                   "stderr": subprocess.PIPE, **more}
        if self.owner:
            given["HOME"] = self.owner.pw_dir
            streams.update(user=self.owner.pw_uid, group=self.owner.pw_gid, extra_groups=[])
        return subprocess.Popen([os.environ["CAY"], *map(str, args)], cwd=self.folder, env=given,
                                **streams)

    def __call__(self, *args, stdin=None, timeout=60, **more):
        if stdin is not None:
            more["stdin"] = subprocess.PIPE
        began = time.monotonic()
        with self.start(*args, **more) as process:
            try:
                out, err = process.communicate(stdin, timeout=timeout)
            except subprocess.TimeoutExpired:
                process.kill()
                raise
        return Answer(process.returncode, out or b"", err or b"", time.monotonic() - began)

    def run(self, *args, **more):
        return self("run", *args, **more)

    def json(self, *args, **more):
        return self("run", "--json", *args, **more)

    def receipts(self):
        chain = self.state / "receipts" / "chain.jsonl"
        return len(chain.read_bytes().splitlines()) if chain.exists() else 0


@pytest.fixture(scope="session", params=roles())
def home(request):
    """A role and the state directory that its tests share: runtimes are looked for once."""
    top = pathlib.Path(tempfile.mkdtemp(prefix="cay-e2e-"))
    top.chmod(0o755)
    state = top / "state"
    state.mkdir(mode=0o700)
    if request.param != "self":
        user = pwd.getpwnam(request.param)
        os.chown(state, user.pw_uid, user.pw_gid)
    yield request.param, top, state
    shutil.rmtree(top)


@pytest.fixture
def cay(home):
    role, top, state = home
    folder = pathlib.Path(tempfile.mkdtemp(dir=top))
    folder.chmod(0o755)
    return Cay(role, folder, state)
