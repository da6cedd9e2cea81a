# SPDX-License-Identifier: Apache-2.0
"""Receipts: one for every end, true to what the client got, and nobody can change them unseen."""
import base64
import hashlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys

import pytest

VERIFIER = pathlib.Path(__file__).parent / "verify_receipts.py"
SLEEP = "import time\nprint('ready', flush=True)\ntime.sleep(100)"
EAT = "x = []\nwhile True: x.append(bytearray(1 << 20))"


class Chain:
    """The chain of a state directory, read without any code of cay."""

    def __init__(self, state):
        self.path, self.key = state / "receipts/chain.jsonl", state / "keys/receipt.pub"

    @property
    def lines(self):
        return self.path.read_bytes().splitlines(keepends=True) if self.path.exists() else []

    def last(self):
        return payload(self.lines[-1])

    def verdict(self, path=None):
        """What the independent verifier says."""
        done = subprocess.run([sys.executable, VERIFIER, path or self.path, self.key],
                              capture_output=True, timeout=120)
        return done.stdout.decode().strip()


def payload(line):
    return json.loads(base64.b64decode(json.loads(line)["payload"]))


def sha256(data):
    return hashlib.sha256(data).hexdigest()


@pytest.fixture
def chain(cay):
    """A state directory of the test's own; runtimes that were found already are known in it."""
    shared, cay.state = cay.state, cay.folder / "own-state"
    cay.state.mkdir(mode=0o700)
    cay.own(cay.state)
    if (shared / "runtimes.cache").exists():
        shutil.copy(shared / "runtimes.cache", cay.state)
        cay.own(cay.state / "runtimes.cache")
    yield Chain(cay.state)
    # A killed warden leaves what the next run sweeps; here none would follow.
    runs = cay.state / "runs"
    if runs.is_dir() and any(runs.iterdir()):
        assert cay.run("--", "true").code == 0
        assert not list(runs.iterdir())


def both_say_valid(cay, chain, count):
    own = cay("receipt", "verify", "--json")
    assert (own.code, own.document["verdict"], own.document["good"]) == (0, "valid", count), own
    assert chain.verdict() == f"valid {count} {own.document['head']}"


# --- one for every end -------------------------------------------------------------------------

def finish(process, timeout=60):
    out, err = process.communicate(timeout=timeout)
    return process.returncode, out, err.decode()


def began(cay, *args):
    """A run whose program has said that it is there."""
    process = cay.start("run", "--timeout", "100s", *args, "-c", SLEEP)
    assert process.stdout.readline() == b"ready\n"
    return process


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as f:
        return [int(child) for child in f.read().split()]


def send(cay, *numbers):
    process = began(cay)
    for number in numbers:
        process.send_signal(number)
    return finish(process)


def kill_below(cay, depth):
    """Kills the warden (1), its launcher (2) or the agent (3) of a run."""
    process = began(cay)
    pid = process.pid
    for _ in range(depth):
        pid = children(pid)[0]
    os.kill(pid, signal.SIGKILL)
    return finish(process)


def close_reader(cay):
    process = cay.start("run", "-c", "while True: print('x' * 1000)")
    process.stdout.readline()
    process.stdout.close()
    code = process.wait(timeout=60)
    process.stderr.close()
    return code, b"", ""


def plain(*args, **more):
    def end(cay):
        done = cay.run(*args, **more)
        return done.code, done.out, done.said
    return end


ENDS = {
    "exit 0": (plain("--", "true"), "exited", 0),
    "exit 3": (plain("--", "sh", "-c", "exit 3"), "exited", 3),
    "signal": (plain("--", "sh", "-c", "kill -SEGV $$"), "signaled", 139),
    "timeout": (plain("--timeout", "500ms", "-c", SLEEP), "timeout", 124),
    "cpu time": (plain("--cpu-time", "500ms", "-c", "while True: pass"), "cpu_time", 124),
    "out of memory": (plain("--memory", "64M", "-c", EAT), "oom", 137),
    "interrupt": (lambda cay: send(cay, signal.SIGINT), "interrupted", 130),
    "SIGTERM": (lambda cay: send(cay, signal.SIGTERM), "cancelled", 143),
    "SIGHUP": (lambda cay: send(cay, signal.SIGHUP), "cancelled", 129),
    "reader gone": (close_reader, "cancelled", 141),
    "not found": (plain("--", "no-such-program"), None, 127),
    "not executable": (plain("--", "/etc/passwd"), None, 126),
    "no warden": (plain("--", "true", env={"CAY_WARDEN": "/bin/false"}), "setup_failed", 125),
    "warden killed": (lambda cay: kill_below(cay, 1), "kernel_died", 125),
    "launcher killed": (lambda cay: kill_below(cay, 2), "kernel_died", 125),
    "agent killed": (lambda cay: kill_below(cay, 3), "kernel_died", 125),
}


@pytest.mark.parametrize("name", ENDS)
def test_every_end_leaves_exactly_one_receipt(cay, chain, name):
    end, cause, want = ENDS[name]
    code, _, said = end(cay)
    assert len(chain.lines) == 1, said
    predicate = chain.last()["predicate"]
    memory = predicate["limits"]["memory_bytes"]
    if cause == "oom" and not memory["enforced_by"].startswith("cgroup"):
        pytest.skip("memory is not held by a cgroup here")
    assert (code, predicate["exit_code"]) == (want, want), said
    if cause:
        assert predicate["cause"] == cause, predicate["cause_detail"]
    assert predicate["cause_detail"]["message"].endswith(".")
    both_say_valid(cay, chain, 1)


def test_twice_interrupted_is_one_receipt(cay, chain):
    process = cay.start("run", "-c", "import signal\nsignal.signal(2, signal.SIG_IGN)\n" + SLEEP)
    assert process.stdout.readline() == b"ready\n"
    process.send_signal(signal.SIGINT)
    while process.poll() is None:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(0.1)
        except subprocess.TimeoutExpired:
            pass
    assert finish(process)[0] == 130
    assert [payload(line)["predicate"]["cause"] for line in chain.lines] == ["cancelled"]


def test_a_killed_cay_leaves_the_chain_whole(cay, chain):
    cay.run("--", "true")
    process = began(cay)
    process.kill()
    finish(process)
    both_say_valid(cay, chain, 1)
    cay.run("--", "true")
    both_say_valid(cay, chain, 2)


def test_what_is_refused_before_it_runs_leaves_none(cay, chain):
    for args in (["--isolation", "gvisor", "--", "true"], ["--memory", "0", "--", "true"],
                 ["no-such-file.py"], ["--lang", "cobol", "-c", "x"]):
        assert cay.run(*args).code in (2, 125)
    assert len(chain.lines) == 0


# --- true to what the client got ---------------------------------------------------------------

def test_the_document_names_its_receipt(cay, chain):
    done = cay.json("-c", "print(1)")
    named = done.document["receipt"]
    body = base64.b64decode(json.loads(chain.lines[-1])["payload"])
    assert (named["sha256"], named["seq"]) == (sha256(body), 1)
    assert named["id"] == json.loads(body)["predicate"]["id"]
    assert named["path"] == str(chain.path)
    shown = cay("receipt", "show", named["id"])
    assert shown.code == 0 and named["id"].encode() in shown.out


def test_digests_are_those_of_what_came_out(cay, chain):
    code = ("import sys, os\nsys.stdout.buffer.write(bytes(range(256)) * 100)\n"
            "sys.stderr.write('warning')\n"
            "open('/workspace/output/r.bin', 'wb').write(b'\\0r' * 999)\n"
            "os.makedirs('/workspace/output/d'); open('/workspace/output/d/e', 'w').close()")
    cay.write("data.csv", "a,b\n1,2\n")
    done = cay.run("--in", "data.csv", "-c", code)
    statement = chain.last()
    predicate = statement["predicate"]
    assert done.code == 0, done
    for name, got in (("stdout", done.out), ("stderr", done.err)):
        want = {"sha256": sha256(got), "bytes": len(got), "dropped_bytes": 0}
        assert predicate[name] == want
    files = {name: (cay.folder / name).read_bytes() for name in ("r.bin", "d/e")}
    assert {f["name"]: (f["sha256"], f["bytes"]) for f in predicate["outputs"]} == {
        f"output/{name}": (sha256(data), len(data)) for name, data in files.items()}
    assert predicate["inputs"] == [
        {"name": "data.csv", "sha256": sha256(b"a,b\n1,2\n"), "bytes": 8}]
    assert predicate["code"]["sha256"] == sha256(code.encode())
    subjects = {s["name"]: s["digest"]["sha256"] for s in statement["subject"]}
    assert subjects["stdout"] == sha256(done.out)
    assert subjects["output/r.bin"] == sha256(files["r.bin"])


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
@pytest.mark.parametrize("size", [4096, 4097, 5000, 500000])
def test_digests_of_a_cut_stream(cay, chain, stream, size):
    written = b"".join(b"%07d\n" % n for n in range(size // 8 + 1))[:size]
    code = (f"import sys\n"
            f"data = b''.join(b'%07d\\n' % n for n in range({size} // 8 + 1))[:{size}]\n"
            f"sys.{stream}.buffer.write(data)")
    done = cay.run("--output", "4K", "-c", code)
    facts = chain.last()["predicate"][stream]
    dropped = size - 4096
    assert facts["sha256"] == sha256(written)
    assert (facts["bytes"], facts["dropped_bytes"]) == (size, dropped)
    got = done.out if stream == "stdout" else done.err
    note = f"\n[cay: {dropped} bytes of {stream} dropped]\n".encode()
    assert dropped == 0 or note in done.err
    if stream == "stderr":
        got = got.replace(note, b"")
    assert got == (written if dropped == 0 else written[:2048] + written[-2048:])
    if dropped:
        assert facts["kept_sha256"] == sha256(got)
    else:
        assert "kept_sha256" not in facts


def test_digests_of_a_cut_document(cay, chain):
    done = cay.json("--output", "1K", "-c", "print('s' * 700 + 'e' * 700, end='')")
    doc, facts = done.document, chain.last()["predicate"]["stdout"]
    info = doc["stdout_info"]
    head, note, tail = doc["stdout"].partition(f"\n[cay: {info['dropped_bytes']} bytes dropped]\n")
    assert note and info["truncated"] and len(head) == info["head_bytes"]
    assert facts["kept_sha256"] == sha256((head + tail).encode())
    assert facts["bytes"] == info["bytes"] == 1400
    assert facts["sha256"] == sha256(b"s" * 700 + b"e" * 700)


DENIED = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
for _ in range(3):
    assert libc.mount(b"none", b"/tmp", b"tmpfs", 0, None) == -1
assert libc.unshare(0x10000000) == -1
if os.fork() == 0:
    libc.ptrace(0, 0, 0, 0)
    os._exit(0)
os.wait()
"""


def test_refused_system_calls_are_counted_by_name(cay, chain):
    done = cay.json("-c", DENIED)
    assert done.code == 0, done
    counted = {call["name"]: call["times"] for call in done.document["denied_system_calls"]}
    assert counted == {"mount": 3, "unshare": 1, "ptrace": 1}
    assert done.flags["syscall_denied"]["number"] == 5
    predicate = chain.last()["predicate"]
    assert predicate["denied_system_calls"] == done.document["denied_system_calls"]
    assert [flag["name"] for flag in predicate["flags"]] == ["syscall_denied"]


def test_hostile_names_cannot_break_the_receipt(cay, chain):
    name = "a\n\x1b[31m\u202e\"\\x"
    code = ("import os\nfor n in (%r, 'b' * 200):\n"
            " open('/workspace/output/' + n, 'w').write(n)" % name)
    cay.run("-c", code, name, "b" * 100000)
    both_say_valid(cay, chain, 1)
    line = chain.lines[0]
    assert len(line) < 65536 and line.isascii()
    text = json.dumps(chain.last(), ensure_ascii=False)
    assert not any(bad in text for bad in ("\x1b", "\u202e", "\\u001b"))


def test_many_results_are_bounded_and_digested(cay, chain):
    code = "for n in range(500):\n open(f'/workspace/output/{n:0100}', 'w').write(str(n))"
    done = cay.json("-c", code, timeout=120)
    assert len(done.document["files"]) == 500, done
    predicate = chain.last()["predicate"]
    assert predicate["outputs_omitted"] + len(predicate["outputs"]) == 500
    assert len(predicate["outputs_sha256"]) == 64
    both_say_valid(cay, chain, 1)


# --- a chain -----------------------------------------------------------------------------------

def test_fifty_at_once_make_one_line(cay, chain):
    running = [cay.start("run", "--", "sh", "-c", f"exit {n}") for n in range(50)]
    codes = [finish(process, timeout=300)[0] for process in running]
    assert codes == list(range(50))
    predicates = [payload(line)["predicate"] for line in chain.lines]
    assert [p["seq"] for p in predicates] == list(range(1, 51))
    assert sorted(p["exit_code"] for p in predicates) == list(range(50))
    assert len({p["id"] for p in predicates}) == 50
    both_say_valid(cay, chain, 50)


def forge(line, change):
    """The line with a statement that was changed and the old signature."""
    envelope = json.loads(line)
    statement = payload(line)
    change(statement)
    envelope["payload"] = base64.b64encode(json.dumps(statement).encode()).decode()
    return json.dumps(envelope, separators=(",", ":")).encode() + b"\n"


def change_code(statement):
    statement["predicate"]["exit_code"] = 0


def flip_signature(line):
    envelope = json.loads(line)
    raw = bytearray(base64.b64decode(envelope["signatures"][0]["sig"]))
    raw[10] ^= 1
    envelope["signatures"][0]["sig"] = base64.b64encode(raw).decode()
    return json.dumps(envelope, separators=(",", ":")).encode() + b"\n"


TAMPERS = {
    "changed": (lambda ls: [ls[0], forge(ls[1], change_code), *ls[2:]], 2, "signature"),
    "signature": (lambda ls: [*ls[:2], flip_signature(ls[2]), ls[3]], 3, "signature"),
    "removed": (lambda ls: [ls[0], *ls[2:]], 2, "order"),
    "first removed": (lambda ls: ls[1:], 1, "order"),
    "doubled": (lambda ls: [*ls[:2], *ls[1:]], 3, "order"),
    "swapped": (lambda ls: [ls[0], ls[2], ls[1], ls[3]], 2, "order"),
    "no JSON": (lambda ls: [*ls[:3], b"nonsense\n"], 4, "format"),
    "empty line": (lambda ls: [*ls[:2], b"\n", *ls[2:]], 3, "format"),
}


@pytest.fixture(scope="module")
def four(home):
    """Four receipts, made once."""
    from conftest import Cay
    role, top, _ = home
    folder = top / "four"
    folder.mkdir(mode=0o755)
    (folder / "state").mkdir(mode=0o700)
    cay = Cay(role, folder, folder / "state")
    cay.own(folder / "state")
    for code in (1, 2, 3, 4):
        assert cay.run("--", "sh", "-c", f"exit {code}").code == code
    return cay, Chain(cay.state)


@pytest.mark.parametrize("name", TAMPERS)
def test_tampering_is_named(four, name):
    cay, chain = four
    tamper, line, fault = TAMPERS[name]
    path = cay.write("tampered.jsonl", b"".join(tamper(chain.lines)))
    done = cay("receipt", "verify", path, "--json")
    doc = done.document
    assert (done.code, doc["verdict"], doc["good"]) == (1, "invalid", line - 1), done
    assert (doc["first_bad"]["line"], doc["first_bad"]["fault"]) == (line, fault), doc
    told = cay("receipt", "verify", path)
    assert told.code == 1 and str(line) in (told.out + told.err).decode()
    assert chain.verdict(path).startswith(f"invalid {line} {fault}")


def test_the_untouched_chain_is_valid_with_its_key_alone(four):
    cay, chain = four
    both_say_valid(cay, chain, 4)
    copy = cay.write("copy.jsonl", b"".join(chain.lines))
    key = cay.write("copy.pub", chain.key.read_bytes())
    elsewhere = cay.folder / "empty-state"
    elsewhere.mkdir(mode=0o700, exist_ok=True)
    cay.own(elsewhere)
    with_key = cay("receipt", "verify", copy, "--key", key, env={"CAY_STATE": str(elsewhere)})
    assert with_key.code == 0, with_key
    without = cay("receipt", "verify", copy, env={"CAY_STATE": str(elsewhere)})
    assert without.code == 3, without


def test_another_key_is_told_apart(four, cay, chain):
    cay.run("--", "true")
    _, others = four
    lines = [*others.lines[:2], chain.lines[0], *others.lines[2:]]
    path = cay.write("mixed.jsonl", b"".join(lines))
    done = cay("receipt", "verify", path, "--key", cay.write("o.pub", others.key.read_bytes()),
               "--json")
    assert (done.code, done.document["first_bad"]["fault"]) == (1, "key"), done


def test_a_cut_tail_changes_the_head(four):
    cay, chain = four
    whole = cay("receipt", "verify", "--json").document["head"]
    path = cay.write("cut.jsonl", b"".join(chain.lines[:-1]))
    done = cay("receipt", "verify", path, "--json")
    assert (done.code, done.document["good"]) == (0, 3)
    assert done.document["head"] != whole


def test_a_torn_end_is_mended_by_the_next_run(cay, chain):
    cay.run("--", "true")
    with chain.path.open("ab") as f:
        f.write(chain.lines[0][:100])
    torn = cay("receipt", "verify", "--json")
    assert (torn.code, torn.document["torn_bytes"]) == (0, 100), torn
    assert cay.run("--", "true").code == 0
    both_say_valid(cay, chain, 2)


def test_a_damaged_end_is_not_built_upon(cay, chain):
    cay.run("--", "true")
    cay.run("--", "true")
    before = chain.lines[0] + chain.lines[1].replace(b"payloadType", b"payloadtype")
    chain.path.write_bytes(before)
    done = cay.run("--", "echo", "ran")
    assert done.code == 125 and "receipt" in done.said, done
    assert chain.path.read_bytes() == before


# --- a full disk -------------------------------------------------------------------------------

@pytest.fixture
def small_disk(cay):
    """A state directory on a file system that can be filled."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small file system")
    cay.state = cay.folder / "small"
    cay.state.mkdir(mode=0o700)
    options = "size=48m,mode=0700"
    if cay.owner:
        options += f",uid={cay.owner.pw_uid},gid={cay.owner.pw_gid}"
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", cay.state], check=True)
    yield cay.state
    subprocess.run(["umount", cay.state], check=True)


def fill(path):
    with open(path, "wb", buffering=0) as f:
        for size in (1 << 20, 4096):
            try:
                while True:
                    f.write(bytes(size))
            except OSError:
                pass


def test_a_full_disk_is_one_sentence_and_the_chain_stays(cay, small_disk):
    chain = Chain(small_disk)
    warm = cay.run("--", "true")
    assert warm.code == 0, warm
    fill(small_disk / "filler")
    before = chain.path.read_bytes()
    for args in (["--", "echo", "ran"], ["-c", "print('ran')"]):
        done = cay.run(*args)
        assert done.code == 125, done
        assert len(done.said.strip().splitlines()) == 1 and "No space left" in done.said, done
    assert chain.path.read_bytes() == before
    assert not list((small_disk / "runs").iterdir())
    (small_disk / "filler").unlink()
    both_say_valid(cay, chain, 1)
    assert cay.run("--", "true").code == 0
    both_say_valid(cay, chain, 2)


def test_a_disk_that_fills_while_it_runs(cay, small_disk):
    chain = Chain(small_disk)
    assert cay.run("--", "true").code == 0
    process = cay.start("run", "-c", "print('ready', flush=True)\ninput()\nprint('end')",
                        stdin=subprocess.PIPE)
    assert process.stdout.readline() == b"ready\n"
    fill(small_disk / "filler")
    out, err = process.communicate(b"go\n", timeout=60)
    assert process.returncode == 125 and b"receipt" in err, (process.returncode, err)
    assert len(chain.lines) == 1
    (small_disk / "filler").unlink()
    both_say_valid(cay, chain, 1)
