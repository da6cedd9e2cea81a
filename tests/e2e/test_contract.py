# SPDX-License-Identifier: Apache-2.0
"""What was promised in so many words and is proven nowhere else."""
import base64
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time

import pytest

MIB, GIB = 1 << 20, 1 << 30
PROFILES = {
    "tiny": (5000, 256 * MIB, 1000, 64 * MIB),
    "small": (30000, 512 * MIB, 1000, 100 * MIB),
    "standard": (120000, GIB, 1000, 2 * GIB),
    "large": (300000, 4 * GIB, 2000, 8 * GIB),
}
FLAGS = {
    "--cpus": ("0.5", "cpu_millis", 500),
    "--memory": ("96M", "memory_bytes", 96 * MIB),
    "--disk": ("1.5G", "disk_bytes", 1536 * MIB),
    "--pids": ("33", "pids", 33),
    "--timeout": ("1.5s", "wall_ms", 1500),
    "--cpu-time": ("9s", "cpu_time_ms", 9000),
    "--output": ("3K", "output_bytes", 3072),
    "--open-files": ("64", "open_files", 64),
}
ENFORCERS = {"cgroup2", "cgroup1", "rlimit", "watcher", "mount", "project_quota", "loop_file",
             "cay", "none"}


def last_predicate(cay):
    line = (cay.state / "receipts/chain.jsonl").read_bytes().splitlines()[-1]
    return json.loads(base64.b64decode(json.loads(line)["payload"]))["predicate"]


def values(document):
    return {name: limit["value"] for name, limit in document["limits"].items()}


# --- limits ------------------------------------------------------------------------------------

@pytest.mark.parametrize("name", PROFILES)
def test_a_profile_is_what_the_table_says(cay, name):
    given = values(cay.json("--profile", name, "--", "true").document)
    got = tuple(given[key] for key in ("wall_ms", "memory_bytes", "cpu_millis", "disk_bytes"))
    assert got == PROFILES[name]
    common = {"pids": 128, "open_files": 4096, "output_bytes": 512 << 10,
              "io_bytes_per_s": 256 * MIB, "io_ops_per_s": 10000}
    assert {key: given[key] for key in common} == common
    assert "cpu_time_ms" not in given


@pytest.mark.parametrize("flag", FLAGS)
def test_a_flag_changes_its_limit_and_no_other(cay, flag):
    text, key, value = FLAGS[flag]
    plain = values(cay.json("--profile", "small", "--", "true").document)
    changed = values(cay.json("--profile", "small", flag, text, "--", "true").document)
    assert changed == {**plain, key: value}


def test_the_receipt_says_who_holds_each_limit(cay):
    document = cay.json("--cpu-time", "9s", "--", "true").document
    limits = last_predicate(cay)["limits"]
    assert limits == document["limits"]
    by = {name: limit["enforced_by"] for name, limit in limits.items()}
    assert set(by.values()) <= ENFORCERS
    assert (by["wall_ms"], by["output_bytes"], by["open_files"]) == ("cay", "cay", "rlimit")
    assert by["tmp_bytes"] == by["shm_bytes"] == "mount"
    held = document["isolation"]["layers"]["held"]
    assert by["memory_bytes"].startswith("cgroup") == ("cgroup" in held)
    assert by["memory_bytes"] != "none" and by["pids"] != "none" and by["disk_bytes"] != "none"


def test_the_programs_own_view_of_its_limits(cay):
    done = cay.run("--open-files", "77", "--", "sh", "-c", "ulimit -n; ulimit -Hn; ulimit -c")
    assert done.out.split()[:2] == [b"77", b"77"], done


def test_a_tree_that_is_too_large_is_out_of_memory_with_and_without_cgroups(cay):
    """Each process is within the limit; together they are not."""
    code = ("import os, time\nfor _ in range(4):\n if os.fork() == 0:\n"
            "  x = bytearray(os.urandom(1 << 20)) * 40\n  time.sleep(20)\ntime.sleep(20)")
    done = cay.json("--memory", "96M", "--timeout", "15s", "-c", code)
    doc = done.document
    assert doc["cause"] == "oom", doc["cause_detail"]
    assert doc["cause_detail"]["limit"] == 96 * MIB
    by_looking = not doc["limits"]["memory_bytes"]["enforced_by"].startswith("cgroup")
    assert ("Without cgroup rights" in doc["cause_detail"]["message"]) == by_looking


# --- causes ------------------------------------------------------------------------------------

ENDS = {
    "exited": (["--", "sh", "-c", "exit 3"], 3, None, False, 3),
    "signaled": (["--", "sh", "-c", "kill -TERM $$"], 15, None, False, 143),
    "timeout": (["--timeout", "300ms", "--", "sleep", "20"], range(300, 9000), 300, False, 124),
    "cpu_time": (["--cpu-time", "300ms", "-c", "while 1: pass"], range(300, 9000), 300, False, 124),
}


@pytest.mark.parametrize("cause", ENDS)
def test_a_cause_carries_number_limit_and_sentence(cay, cause):
    args, number, limit, retryable, code = ENDS[cause]
    done = cay.json(*args)
    detail = done.document["cause_detail"]
    assert (done.code, done.document["cause"]) == (code, cause), done
    assert set(detail) == {"number", "limit", "retryable", "message"}
    assert detail["number"] in (number if isinstance(number, range) else [number])
    assert (detail["limit"], detail["retryable"]) == (limit, retryable)
    assert detail["message"][0].isupper() and detail["message"].endswith(".")
    receipt = last_predicate(cay)
    assert (receipt["cause"], receipt["cause_detail"]) == (cause, detail)


@pytest.mark.parametrize("number,cause,code", [(signal.SIGINT, "interrupted", 130),
                                               (signal.SIGTERM, "cancelled", 143)])
def test_what_people_end_may_be_tried_again(cay, number, cause, code):
    process = cay.start("run", "--json", "-c", "import time\ntime.sleep(30)")
    wait_for_program(process.pid)
    process.send_signal(number)
    out, err = process.communicate(timeout=20)
    document = json.loads(out)
    assert (process.returncode, document["cause"]) == (code, cause), (out, err)
    assert document["cause_detail"]["retryable"] is True


def wait_for_program(pid):
    """Until the program sleeps: then it has installed what Python does about SIGINT."""
    end = time.monotonic() + 20
    while time.monotonic() < end:
        pids, todo = [], [pid]
        while todo:
            try:
                kids = pathlib.Path(f"/proc/{todo[0]}/task/{todo.pop(0)}/children").read_text()
            except OSError:
                continue
            pids += map(int, kids.split())
            todo += map(int, kids.split())
        for child in pids:
            try:
                words = pathlib.Path(f"/proc/{child}/cmdline").read_bytes()
                if b"code.py" in words and b"python" in words:
                    time.sleep(1)
                    return
            except OSError:
                pass
        time.sleep(0.05)
    raise AssertionError("the program did not start")


def test_a_flag_carries_number_limit_and_sentence(cay):
    done = cay.json("--output", "1K", "--", "seq", "1", "5000")
    flag = done.flags["output_truncated"]
    assert set(flag) == {"name", "number", "limit", "retryable", "message"}
    assert (flag["limit"], flag["retryable"]) == (1024, False)
    assert "--output" in flag["message"]


# --- output ------------------------------------------------------------------------------------

def test_each_stream_has_a_cap_of_its_own_and_any_bytes_survive(cay):
    code = ("import sys\nsys.stdout.buffer.write(bytes(range(256)) * 64)\n"
            "sys.stderr.buffer.write(b'\\xff\\0' * 300)")
    done = cay.json("--output", "2K", "-c", code)
    doc, whole = done.document, bytes(range(256)) * 64
    info = doc["stdout_info"]
    assert (info["encoding"], info["truncated"], info["bytes"]) == ("base64", True, len(whole))
    assert info["dropped_bytes"] == len(whole) - 2048
    kept, head = base64.b64decode(doc["stdout"]), info["head_bytes"]
    assert kept[:head] == whole[:head] and kept[-1024:] == whole[-1024:]
    assert base64.b64decode(doc["stderr"]) == b"\xff\0" * 300
    assert not doc["stderr_info"]["truncated"]


# --- languages ---------------------------------------------------------------------------------

def found(cay, **more):
    return cay("runtimes", "--json", timeout=120, **more).document


def test_the_default_is_the_promised_one_or_it_is_said(cay):
    for lang, want in (("python", "3.12"), ("node", "20")):
        runtimes = [r for r in found(cay)["runtimes"] if r["lang"] == lang and r["usable"]]
        if not runtimes:
            continue
        default = [r for r in runtimes if r["default"]]
        assert len(default) == 1
        there = any(r["name"] == f"{lang}@{want}" for r in runtimes)
        assert (default[0]["name"] == f"{lang}@{want}") == there
        runtime = cay.json("--lang", lang, "-c", "1").document["runtime"]
        assert runtime["version"] == default[0]["version"]
        assert there == ("note" not in runtime)
        assert there or want in runtime["note"] and runtime["version"] in runtime["note"]


PLACES = {
    "python": [".pyenv/versions/{0}", ".local/share/uv/python/cpython-{0}-linux-x86_64-gnu",
               ".asdf/installs/python/{0}", ".local/share/mise/installs/python/{0}",
               "miniconda3/envs/e{0}", "miniforge3/envs/e{0}"],
    "node": [".nvm/versions/node/v{0}", ".local/share/fnm/node-versions/v{0}/installation",
             ".volta/tools/image/node/{0}", ".asdf/installs/nodejs/{0}",
             ".local/share/mise/installs/node/{0}"],
}
ROOTS = {"PYENV_ROOT": ("python", "versions/{0}"), "NVM_DIR": ("node", "versions/node/v{0}"),
         "FNM_DIR": ("node", "node-versions/v{0}/installation"),
         "VOLTA_HOME": ("node", "tools/image/node/{0}"),
         "ASDF_DATA_DIR": ("python", "installs/python/{0}"),
         "MISE_DATA_DIR": ("python", "installs/python/{0}")}


def plant(cay, lang, prefix, version):
    """An interpreter that answers when it is asked who it is."""
    command = {"python": "python3", "node": "node"}[lang]
    path = cay.folder / prefix / "bin" / command
    answers = [f"version = {version}", "implementation = cpython", f"exe = {path}",
               f"prefix = {cay.folder / prefix}", f"site = {cay.folder / prefix}/lib/site-packages",
               "shared = yes"]
    lines = "".join(f"echo 'cay: {answer}'\n" for answer in answers)
    cay.write(f"{prefix}/bin/{command}", f"#!/bin/sh\necho {version} >>{cay.folder}/asked\n{lines}",
              mode=0o755)
    return str(path)


@pytest.fixture
def empty_state(cay):
    cay.state = cay.folder / "new-state"
    cay.state.mkdir(mode=0o700)
    cay.own(cay.state)
    return cay


def test_the_prefixes_of_version_managers_are_searched(empty_state):
    cay = empty_state
    planted, variables, versions = {}, {}, {"python": "3.12.{}", "node": "20.11.{}"}
    for lang, places in PLACES.items():
        for place in places:
            version = versions[lang].format(len(planted) + 100)
            planted[plant(cay, lang, place.format(version), version)] = version
    for variable, (lang, place) in ROOTS.items():
        version = versions[lang].format(len(planted) + 100)
        planted[plant(cay, lang, f"{variable}/{place.format(version)}", version)] = version
        variables[variable] = str(cay.folder / variable)
    cay.owner, owner = None, cay.owner  # HOME is ours; the user is given below
    more = dict(user=owner.pw_uid, group=owner.pw_gid, extra_groups=[]) if owner else {}
    variables["HOME"] = str(cay.folder)
    done = cay("runtimes", "--json", timeout=120, env=variables, **more)
    seen = {r["path"]: r["version"] for r in done.document["runtimes"]}
    assert planted.items() <= seen.items(), set(planted) - set(seen)
    asked = (cay.folder / "asked").read_text().split()
    assert sorted(asked) == sorted(planted.values()), "each is asked exactly once"


def test_what_is_not_there_is_listed_with_the_reason(empty_state):
    cay = empty_state
    old = plant(cay, "python", ".pyenv/versions/3.7.9", "3.7.9")
    cay.owner, owner = None, cay.owner
    more = dict(user=owner.pw_uid, group=owner.pw_gid, extra_groups=[]) if owner else {}
    done = cay("runtimes", timeout=120, env={"HOME": str(cay.folder)}, **more)
    assert done.code == 0
    text = done.out.decode()
    assert f"{old}: version 3.7.9 is not supported; 3.10 to 3.13 are" in text
    for title in ("Bash", "C", "Node.js", "Python", "TypeScript"):
        assert f"\n{title}\n" in "\n" + text
    done = cay.run("--lang", "python@3.10.99", "-c", "1", **more)
    assert done.code == 125 and "python@3.10.99" in done.said and "uv python install" in done.said


def test_a_first_line_names_the_version(cay):
    names = {r["name"] for r in found(cay)["runtimes"] if r["usable"] and r["lang"] == "python"}
    for name in sorted(names):
        version = name.removeprefix("python@")
        cay.write("script", f"#!/usr/bin/env python{version}\nimport sys\n"
                            "print('%d.%d' % sys.version_info[:2])\n")
        assert cay.run("script").out.decode().strip() == version


@pytest.mark.parametrize("name,text,lang", [("a.sh", "echo $((6 * 7))", "bash"),
                                            ("a.js", "console.log(6 * 7)", "node"),
                                            ("a.mjs", "console.log(await 42)", "node"),
                                            ("a.py", "print(6 * 7)", "python")])
def test_the_extension_tells_the_language(cay, name, text, lang):
    if not any(one["lang"] == lang and one["usable"] for one in found(cay)["languages"]):
        pytest.skip(f"there is no {lang} here")
    cay.write(name, text)
    done = cay.json(name)
    assert done.document["stdout"] == "42\n", done
    assert done.document["runtime"]["name"].split("@")[0] == lang


def test_libraries_without_any_index_are_a_clear_message(empty_state):
    cay = empty_state
    others = [r for r in found(cay)["runtimes"]
              if r["lang"] == "python" and r["usable"] and r["prefix"] != "/usr"]
    if not others:
        pytest.skip("only the system's Python is here; root would ask apt-get")
    done = cay("runtime", "add", f"python@{others[0]['version']}", "--with", "data", timeout=300,
               env={"PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_RETRIES": "0",
                    "PIP_CONFIG_FILE": "/dev/null", "PIP_NO_INDEX": "", "PIP_EXTRA_INDEX_URL": ""})
    assert done.code == 125 and "PIP_INDEX_URL" in done.said.splitlines()[-1], done
    assert not list((cay.state / "layers").glob("python@*/*"))
    assert cay("runtime", "ls").out == b""


# --- an image ----------------------------------------------------------------------------------

def test_any_root_file_system_can_be_the_image(cay):
    compiler = shutil.which("gcc") or pytest.skip("there is no compiler")
    source = cay.write("hello.c", '#include <stdio.h>\n#include <unistd.h>\nint main(void) {\n'
                       'printf("%d %d %d %d\\n", access("/marker", F_OK),\n'
                       'access("/usr/bin", F_OK), access("/root", F_OK),\n'
                       'access("/marker", W_OK)); }\n')
    (cay.folder / "image/bin").mkdir(parents=True)
    cay.write("image/marker", "x")
    subprocess.run([compiler, "-static", "-o", cay.folder / "image/bin/hello", source], check=True)
    for path in (cay.folder / "image", cay.folder / "image/bin", cay.folder / "image/bin/hello"):
        cay.own(path)
    before = sorted(map(str, (cay.folder / "image").rglob("*")))
    done = cay.run("--image", "image", "--", "/bin/hello")
    assert (done.code, done.out) == (0, b"0 -1 -1 -1\n"), done
    assert sorted(map(str, (cay.folder / "image").rglob("*"))) == before


# --- receipts ----------------------------------------------------------------------------------

def test_the_receipt_has_what_was_promised(cay):
    cay.write("in.txt", "data")
    cay.json("--in", "in.txt", "-c", "open('/workspace/output/o', 'w').write('x')", "word")
    got = last_predicate(cay)
    assert set(got) >= {"id", "seq", "prev", "time", "execution", "who", "program", "runtime",
                        "code", "argv", "inputs", "outputs", "stdout", "stderr", "isolation",
                        "policy",
                        "limits", "usage", "denied_system_calls", "cause", "cause_detail", "flags",
                        "exit_code", "signal"}
    uid = cay.owner.pw_uid if cay.owner else os.geteuid()
    assert got["who"]["uid"] == uid
    assert (got["isolation"]["requested"], got["isolation"]["actual"]) == ("jail", "jail")
    assert got["policy"]["network"] == "none"
    assert got["runtime"]["name"].startswith("python@") and got["argv"]["count"] == 1
    assert len(got["isolation"]["agent_sha256"]) == len(got["isolation"]["seccomp_sha256"]) == 64
    assert set(got["usage"]) >= {"wall_ms", "cpu_ms", "peak_memory_bytes", "io_read_bytes",
                                 "io_write_bytes", "processes"}


def test_receipts_are_listed_and_shown(empty_state):
    cay = empty_state
    for code in (1, 2, 3):
        assert cay.run("--", "sh", "-c", f"exit {code}").code == code
    rows = [line.split() for line in cay("receipt", "ls").out.decode().splitlines()[1:]]
    assert [(row[0], row[3], row[4]) for row in rows] == [
        (str(n), "exited", str(n)) for n in (1, 2, 3)]
    assert len(cay("receipt", "ls", "-n", "1").out.splitlines()) == 2
    third = rows[2][2]
    for name in (third, third[:12], "3", "last"):
        shown = cay("receipt", "show", name)
        assert shown.code == 0 and third in shown.out.decode(), shown
        assert b"signature  valid" in shown.out
    assert json.loads(cay("receipt", "ls", "--json").out)
    assert json.loads(cay("receipt", "show", "2", "--json").out)
    assert cay("receipt", "show", "4").code == 3


# --- doctor ------------------------------------------------------------------------------------

def test_every_line_that_is_not_ok_says_how_to_mend_it(cay):
    checks = cay("doctor", "--json").document["checks"]
    for check in checks:
        assert check["means"] and "\n" not in check["means"]
        if check["status"] == "degraded":
            assert check["mend"], check
    plain = cay("doctor").out.decode()
    for check in checks:
        assert check["status"] == "ok" or not check["mend"] or f"$ {check['mend']}" in plain


# --- bad input ---------------------------------------------------------------------------------

NUMBERS = ["nan", "inf", "-1", "0", "", " ", "+5", "5 ", "5.", "0x10", "1e3", "1,5", "١", "five",
           "18446744073709551616", "9" * 40]


@pytest.mark.parametrize("flag", FLAGS)
def test_no_limit_takes_what_is_not_a_positive_number(cay, flag):
    before = cay.receipts()
    for text in NUMBERS:
        done = cay.run(flag, text, "--", "true")
        assert (done.code, done.out) == (2, b""), (text, done)
        assert done.said.count("\n") == 1 and f"{flag} '{text}'" in done.said, done
        assert "; give " in done.said
    assert cay.receipts() == before


COMMANDS = [
    ([], 2, "a command is missing"), (["frob"], 2, "unknown command 'frob'"),
    (["doctor", "--frob"], 2, "--frob"), (["runtimes", "--frob"], 2, "--frob"),
    (["runtimes", "extra"], 2, "extra"), (["runtime"], 2, "runtime needs"),
    (["runtime", "add"], 2, "must be named"), (["runtime", "add", "python"], 2, "--with"),
    (["runtime", "add", "python", "--with", "magic"], 125, "'magic'"),
    (["runtime", "add", "cobol", "--with", "data"], (2, 125), "'cobol'"),
    (["runtime", "rm", "python@3.12", "--with", "nothing"], 125, "'nothing'"),
    (["receipt"], 2, "ls"), (["receipt", "frob"], 2, "frob"), (["receipt", "show"], 2, "which"),
    (["receipt", "show", "zzz"], 3, "'zzz'"), (["receipt", "ls", "-n", "0"], 2, "'0' is zero"),
    (["receipt", "verify", "missing"], 3, "'missing'"),
    (["receipt", "verify", "--key", "missing"], 3, "'missing'"),
    (["run", "--env-file", "bad-env", "--", "true"], 2, "not the name of a variable"),
    (["run", "--env-file", "nul-env", "--", "true"], 2, "is not text"),
    (["run", "--env-file", "big-env", "--", "true"], 2, "larger than 1 MiB"),
    (["run", "--env-file", ".", "--", "true"], 125, "Is a directory"),
    (["run", "--image", "bad-env", "--", "true"], 2, "is not a directory"),
    (["run", "--in", "pipe", "--", "true"], 2, "is not a regular file"),
    (["run", "/dev/zero", "--lang", "python"], 2, "is not a regular file"),
    (["run", "unknown.xyz"], 2, "cannot tell the language"),
    (["run", "--lang", "cobol", "-c", "1"], 2, "no language 'cobol'"),
    (["run", "--lang", "python@x", "-c", "1"], 2, "a version is numbers"),
    (["run", "-w", "/nowhere", "--", "true"], 125, "'/nowhere'"),
]


@pytest.mark.parametrize("args,code,words", COMMANDS)
def test_every_mistake_is_one_sentence(cay, args, code, words):
    cay.write("bad-env", "no pair\n")
    cay.write("nul-env", b"A=1\0B=2\n")
    cay.write("big-env", b"A=" + b"x" * (1 << 20))
    cay.write("unknown.xyz", "1")
    os.mkfifo(cay.folder / "pipe")
    cay.own(cay.folder / "pipe")
    names = sorted(os.listdir(cay.folder))
    done = cay(*args)
    assert done.code in (code if isinstance(code, tuple) else (code,)), done
    assert done.said.count("\n") == 1 and done.said.startswith("cay: ") and words in done.said, done
    assert done.out == b""
    assert sorted(os.listdir(cay.folder)) == names
    runs = cay.state / "runs"
    assert not runs.exists() or not list(runs.iterdir())


def test_code_of_16_mib_runs_and_more_leaves_nothing(cay):
    cay.write("whole.py", b"print(7)\n" + b"#" * ((16 << 20) - 9))
    assert cay.run("whole.py").out == b"7\n"
    before = cay.receipts()
    cay.write("more.py", b"print(7)\n" + b"#" * ((16 << 20) - 8))
    done = cay.run("more.py")
    assert done.code == 2 and done.said.count("\n") == 1 and "'more.py'" in done.said, done
    assert cay.receipts() == before


def test_arguments_are_counted_together(cay):
    done = cay.run("--", "sh", "-c", "echo $#", "sh", *["x" * 100000] * 10)
    assert (done.code, done.out) == (0, b"10\n"), done
    before = cay.receipts()
    done = cay.run("--", "sh", "-c", "echo $#", "sh", *["x" * 100000] * 11)
    assert done.code == 2 and done.said.count("\n") == 1, done
    assert cay.receipts() == before


@pytest.fixture
def read_only_state(cay):
    """A state directory that cannot be written to, by root neither."""
    state = pathlib.Path(tempfile.mkdtemp(dir=cay.folder))
    cay.own(state)
    cay.state = state
    if cay.owner or os.geteuid() != 0:
        state.chmod(0o500)
        yield state
        return
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "ro,mode=0700", "none", state],
                          capture_output=True)
    if made.returncode != 0:
        pytest.skip("this root may not mount")
    yield state
    subprocess.run(["umount", state], check=True)


@pytest.mark.parametrize("args", [["--", "echo", "ran"], ["-c", "print('ran')"]])
def test_a_state_directory_without_write_permission(cay, read_only_state, args):
    done = cay.run(*args)
    assert (done.code, done.out) == (125, b""), done
    assert done.said.count("\n") == 1 and str(read_only_state) in done.said, done
    assert not list(read_only_state.iterdir())
