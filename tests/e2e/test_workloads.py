# SPDX-License-Identifier: Apache-2.0
"""Ordinary programs work inside as they do outside.

Each program of workloads/ runs in the jail and, with the same interpreter, outside of it; both
must print what stands beside it in NAME.out.

CAY_DATA_STATE may name a state directory whose Python has the data libraries already."""
import os
import pathlib
import shutil
import subprocess
import tempfile

import pytest

WORKLOADS = pathlib.Path(__file__).parent / "workloads"
SECONDS = 300  # a loaded machine may be slow; that is not what is tested
LIMITS = ("--timeout", f"{SECONDS}s")
PATH = "/usr/local/bin:/usr/bin:/bin"


def names(folder, ending):
    return sorted(path.name for path in (WORKLOADS / folder).glob("*" + ending))


def expected(name):
    return (WORKLOADS / name).with_suffix(".out").read_bytes()


def outside(cay, *argv, env=None):
    """The same as the same user in a folder of its own, without a jail."""
    folder = pathlib.Path(tempfile.mkdtemp(dir=cay.folder))
    cay.own(folder)
    who = {}
    if cay.owner:
        who = {"user": cay.owner.pw_uid, "group": cay.owner.pw_gid, "extra_groups": []}
    given = {"PATH": PATH, "HOME": str(folder), "LANG": "C.UTF-8", "TMPDIR": "/tmp", **(env or {})}
    return subprocess.run([*map(str, argv)], cwd=folder, env=given, stdin=subprocess.DEVNULL,
                          capture_output=True, timeout=SECONDS, **who)


def compare(inside, out, want, code=0):
    assert inside.out == want, inside
    assert inside.code == code, inside
    assert out.stdout == want, out.stderr
    assert out.returncode == code, out.stderr


def same(cay, name, *flags, interpreter, env=None):
    """Runs one workload on both sides."""
    script = cay.write(pathlib.Path(name).name, (WORKLOADS / name).read_bytes())
    inside = cay.run(*LIMITS, *flags, script, timeout=SECONDS + 30)
    compare(inside, outside(cay, interpreter, script, env=env), expected(name))


def known_runtimes(cay):
    found = cay("runtimes", "--json", timeout=SECONDS).document["runtimes"]
    return [runtime for runtime in found if runtime["usable"]]


def default(cay, lang):
    found = [r for r in known_runtimes(cay) if r["lang"] == lang and r["default"]]
    if not found:
        pytest.skip(f"this user has no {lang}")
    return found[0]


@pytest.mark.parametrize("name", [n for n in names("python", ".py") if n != "tour.py"])
def test_python(cay, name):
    same(cay, f"python/{name}", interpreter=default(cay, "python")["path"])


def test_every_python(cay):
    default(cay, "python")
    script = cay.write("tour.py", (WORKLOADS / "python/tour.py").read_bytes())
    for runtime in known_runtimes(cay):
        if runtime["lang"] != "python":
            continue
        minor = runtime["name"].removeprefix("python@")
        assert minor in ("3.10", "3.11", "3.12", "3.13")
        want = f"python {minor}\n".encode() + expected("python/tour.py")
        inside = cay.run(*LIMITS, "--lang", f"python@{runtime['version']}", script,
                         timeout=SECONDS + 30)
        compare(inside, outside(cay, runtime["path"], script), want)


@pytest.mark.parametrize("name", names("node", "js"))
def test_every_node(cay, name):
    found = [r for r in known_runtimes(cay) if r["lang"] == "node"]
    if not found:
        pytest.skip("this user has no Node.js")
    for runtime in found:
        same(cay, f"node/{name}", "--lang", f"node@{runtime['version']}",
             interpreter=runtime["path"])


def test_typescript_where_node_can(cay):
    languages = cay("runtimes", "--json", timeout=SECONDS).document["languages"]
    if not any(one["lang"] == "typescript" and one["usable"] for one in languages):
        pytest.skip("no Node.js here that takes TypeScript")
    script = cay.write("a.ts", "const n: number = 6;\nconsole.log(n * 7);\n")
    done = cay.run(*LIMITS, script, timeout=SECONDS + 30)
    assert (done.code, done.out) == (0, b"42\n"), done


TOOLS = {"git.sh": "git", "terminal.sh": "script"}


@pytest.mark.parametrize("name", names("bash", ".sh"))
def test_bash(cay, name):
    tool = TOOLS.get(name, "bash")
    if not shutil.which(tool, path="/usr/bin:/bin"):
        pytest.skip(f"{tool} is not on this machine")
    same(cay, f"bash/{name}", interpreter="bash")


def test_c_inside_and_outside(cay):
    source = cay.write("program.c", (WORKLOADS / "c/program.c").read_bytes())
    inside = cay.run(*LIMITS, source, "last", timeout=SECONDS + 30)
    compiler = default(cay, "c")["path"]
    binary = cay.folder / "program"
    assert outside(cay, compiler, "-O1", "-o", binary, source, "-ldl", "-lpthread").returncode == 0
    compare(inside, outside(cay, binary, "last"), expected("c/program.c"), code=7)


def test_a_compiler_inside_by_hand(cay):
    cay.write("a.c", '#include <stdio.h>\nint main(void) { printf("%d\\n", 6 * 7); }\n')
    done = cay.run(*LIMITS, "--in", "a.c", "--", "sh", "-c",
                   "cp input/a.c . && gcc -O2 -Wall -c a.c && ar rcs liba.a a.o && "
                   "gcc -o a a.o && strip a && ./a", timeout=SECONDS + 30)
    assert (done.code, done.out) == (0, b"42\n"), done


def find_tool(name, *places):
    found = shutil.which(name) or next((p for p in map(os.path.expanduser, places)
                                        if os.access(p, os.X_OK)), None)
    if not found:
        pytest.skip(f"{name} is not on this machine")
    return found


@pytest.fixture(scope="session")
def binaries():
    """Programs that were compiled outside, once for all roles."""
    made = {}
    with tempfile.TemporaryDirectory(prefix="cay-e2e-") as top:
        def compile_once(name, *argv):
            if name not in made:
                done = subprocess.run([*argv], cwd=top, capture_output=True, timeout=SECONDS,
                                      env={**os.environ, "CGO_ENABLED": "0", "GOCACHE": f"{top}/go",
                                           "GOPATH": f"{top}/gopath", "GOFLAGS": "-modcacherw"})
                assert done.returncode == 0, done.stderr
                made[name] = (pathlib.Path(top) / name).read_bytes()
            return made[name]
        yield compile_once


def runs_compiled(cay, name, content, want, code):
    binary = cay.write(name, content, mode=0o755)
    inside = cay.run(*LIMITS, "--in", binary, "--", f"/workspace/input/{name}",
                     timeout=SECONDS + 30)
    compare(inside, outside(cay, binary), want, code)


def test_go(cay, binaries):
    go = find_tool("go", "/usr/local/go/bin/go", "~/go/bin/go")
    content = binaries("copy-go", go, "build", "-o", "copy-go", str(WORKLOADS / "go/copy.go"))
    runs_compiled(cay, "copy-go", content, expected("go/copy.go"), 0)


def test_the_go_tool_itself(cay):
    go = find_tool("go", "/usr/local/go/bin/go")
    if not os.path.realpath(go).startswith("/usr/"):
        pytest.skip("go is not in /usr, so it is not inside")
    done = cay.run(*LIMITS, "--", go, "env", "GOOS", "GOROOT", timeout=SECONDS + 30)
    root = os.path.dirname(os.path.dirname(os.path.realpath(go)))
    assert (done.code, done.out.decode().split()) == (0, ["linux", root]), done
    source = cay.write("a.go", "package main\n\nfunc main() {\nx:=1\n_ = x }\n")
    done = cay.run(*LIMITS, "--in", source, "--", os.path.join(os.path.dirname(go), "gofmt"),
                   "/workspace/input/a.go", timeout=SECONDS + 30)
    assert done.out == b"package main\n\nfunc main() {\n\tx := 1\n\t_ = x\n}\n", done


def test_rust(cay, binaries):
    rustc = find_tool("rustc", "~/.cargo/bin/rustc", "/usr/local/bin/rustc")
    content = binaries("copy-rs", rustc, "-O", "-o", "copy-rs", str(WORKLOADS / "rust/copy.rs"))
    runs_compiled(cay, "copy-rs", content, expected("rust/copy.rs"), 4)


# --- Python's libraries for data ---------------------------------------------------------------

def find_layer(state):
    """data, or data.usr where it belongs to an interpreter in /usr."""
    return next(pathlib.Path(state).glob("layers/python@*/data*"), None)


def owned_state(uid):
    """A state directory that was given to us and belongs to this uid: what is built there stays."""
    for name in ("CAY_DATA_STATE", "CAY_STATE"):
        state = os.environ.get(name)
        if state and os.path.isdir(state) and os.stat(state).st_uid == uid:
            return pathlib.Path(state)
    return None


def debian_has_them():
    check = "import numpy, pandas, matplotlib, sklearn, scipy"
    return os.access("/usr/bin/python3", os.X_OK) and subprocess.run(
        ["/usr/bin/python3", "-c", check], capture_output=True).returncode == 0


built = {}  # per role: flags, interpreter and environment, or why not


def build_libraries(cay):
    if not find_layer(cay.state):
        runtime = default(cay, "python")["name"]
        done = cay("runtime", "add", runtime, "--with", "data", timeout=1200)
        if done.code != 0:
            assert done.code == 125 and done.said.strip(), done
            return done.said.strip()
    layer = find_layer(cay.state)
    path = next(layer.resolve().rglob("numpy/__init__.py")).parent.parent
    runtime = next(r for r in known_runtimes(cay) if r["name"] == layer.parent.name
                   and r["path"].startswith("/usr/") == (layer.name != "data"))
    flags = ("--lang", f"python@{runtime['version']}")
    return flags, runtime["path"], {"PYTHONPATH": str(path)}


@pytest.fixture
def data(cay, home):
    role = home[0]
    cay.state = owned_state(cay.owner.pw_uid if cay.owner else os.geteuid()) or cay.state
    if role not in built:
        built[role] = build_libraries(cay)
        if isinstance(built[role], str) and debian_has_them():
            version = subprocess.check_output(["/usr/bin/python3", "-V"]).decode().split()[1]
            built[role] = ("--lang", f"python@{version}"), "/usr/bin/python3", {}
    if isinstance(built[role], str):
        pytest.skip(f"no data libraries, and Debian's are not installed: {built[role]}")
    return built[role]


@pytest.mark.parametrize("name", names("data", ".py"))
def test_data(cay, data, name):
    flags, interpreter, env = data
    # With one thread each, as the sandbox has one core: sums then come in the same order.
    threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MPLCONFIGDIR": "/tmp"}
    same(cay, f"data/{name}", *flags, "--pids", "256", interpreter=interpreter,
         env={**env, **threads})


def test_a_plot_comes_back(cay, data):
    flags, _, _ = data
    script = cay.write("plot.py", (WORKLOADS / "data/plot.py").read_bytes())
    done = cay.json(*LIMITS, *flags, script, timeout=SECONDS + 30)
    assert done.code == 0, done
    assert (cay.folder / "tide.png").read_bytes().startswith(b"\x89PNG\r\n")
    assert {f["path"] for f in done.document["files"]} == {"tide.png", "tide.svg", "tide.pdf"}
    # numpy asks for memory near the processor and goes on without.
    assert {call["name"] for call in done.document["denied_system_calls"]} <= {"mbind"}
