# SPDX-License-Identifier: Apache-2.0
"""`cay doctor` on this machine: every line is whole, nothing is changed, nothing can stall it."""
import json
import os
import pty
import re
import subprocess
import time

import pytest

CAY = os.environ["CAY"]
STATUSES = {"ok", "degraded", "missing"}
LINE = re.compile(r"^  (ok|degraded|missing) +(\S.*)$")


def doctor(*arguments, **variables):
    environment = {**os.environ, **variables}
    return subprocess.run([CAY, "doctor", *arguments], capture_output=True, text=True, timeout=60,
                          stdin=subprocess.DEVNULL, env=environment)


def document(**variables):
    done = doctor("--json", **variables)
    assert done.stderr == ""
    return json.loads(done.stdout), done.returncode


def checks(**variables):
    return {check["name"]: check for check in document(**variables)[0]["checks"]}


def program(folder, name, text):
    path = folder / name
    path.write_text(text)
    path.chmod(0o755)
    return path


def test_the_document_is_whole_and_agrees_with_the_exit_code():
    found, code = document()
    assert {"checks", "can_run"} <= found.keys()
    names = [check["name"] for check in found["checks"]]
    assert len(names) == len(set(names)) > 30
    for check in found["checks"]:
        assert {"name", "status", "found", "means", "mend"} <= check.keys()
        assert check["status"] in STATUSES
        assert check["found"] and check["means"]
    missing = [c["name"] for c in found["checks"] if c["essential"] and c["status"] == "missing"]
    assert found["can_run"] == (not missing)
    assert code == (0 if found["can_run"] else 1)


def test_it_speaks_of_everything_that_a_jail_needs():
    expected = {
        "kernel", "seccomp", "seccomp_notify", "landlock", "user_namespaces", "id_ranges", "overlay",
        "proc", "cgroup_version", "cgroup_controllers", "cgroup_rights", "state_dir", "receipt_key",
        "quota", "python", "node", "bash", "c", "core_pattern", "tiocsti", "io_uring", "pid_max",
        "crun", "runc", "runsc", "docker", "podman", "kvm",
    }
    assert expected <= checks().keys()


def test_a_machine_that_runs_things_is_said_to(tmp_path):
    ran = subprocess.run([CAY, "run", "--", "/bin/true"], capture_output=True, timeout=60, cwd=tmp_path,
                         stdin=subprocess.DEVNULL)
    assert document()[1] == (0 if ran.returncode == 0 else 1)


def test_people_get_one_aligned_line_for_each_check():
    text = doctor().stdout
    lines = [line for line in text.splitlines() if LINE.match(line)]
    assert len(lines) == len(checks())
    assert "\033" not in text
    assert "`cay run` " in text.splitlines()[-1]


def test_what_is_not_ok_comes_with_a_command():
    for check in checks().values():
        if check["status"] != "ok" and check["essential"]:
            assert check["mend"], check["name"]


def test_nothing_is_made_or_left(tmp_path):
    state = tmp_path / "state"
    with open("/proc/self/mountinfo", encoding="utf-8") as file:
        before = file.read()
    check = checks(CAY_STATE=str(state))["state_dir"]
    assert check["status"] == "ok" and str(state) in check["found"]
    assert not state.exists()
    with open("/proc/self/mountinfo", encoding="utf-8") as file:
        assert file.read() == before


def test_a_state_directory_that_cannot_be_is_essential():
    found, code = document(CAY_STATE="/dev/null/cay")
    check = next(c for c in found["checks"] if c["name"] == "state_dir")
    assert check["status"] == "missing"
    assert code == 1 and not found["can_run"]


def test_a_tool_that_hangs_does_not_stall_it(tmp_path):
    program(tmp_path, "crun", "#!/bin/sh\nsleep 617.25 &\nsleep 617.25\n")
    begin = time.monotonic()
    check = checks(PATH=f"{tmp_path}:{os.environ['PATH']}")["crun"]
    assert time.monotonic() - begin < 30
    assert check["found"].startswith(f"{tmp_path}/crun")
    left = subprocess.run(["pgrep", "-f", r"^sleep 617\.25$"], capture_output=True, text=True, check=False)
    assert left.stdout == ""


def test_what_a_tool_prints_cannot_move_the_cursor(tmp_path):
    program(tmp_path, "runc", "#!/bin/sh\nprintf '1.0\\033[2J\\377\\n'\n")
    check = checks(PATH=f"{tmp_path}:{os.environ['PATH']}")["runc"]
    assert check["found"] == f"{tmp_path}/runc, 1.0?[2J?"


def test_a_tool_that_fails_is_no_failure_of_ours(tmp_path):
    program(tmp_path, "podman", "#!/bin/sh\nkill -SEGV $$\n")
    assert "podman" in checks(PATH=f"{tmp_path}:{os.environ['PATH']}")["podman"]["found"]


def test_it_works_without_any_environment():
    done = subprocess.run([CAY, "doctor", "--json"], capture_output=True, text=True, timeout=60,
                          stdin=subprocess.DEVNULL, env={"CAY_STATE": os.environ["CAY_STATE"]})
    assert done.returncode in (0, 1)
    json.loads(done.stdout)


def on_a_terminal(**variables):
    main, other = pty.openpty()
    child = subprocess.Popen([CAY, "doctor"], stdin=subprocess.DEVNULL, stdout=other, stderr=other,
                             env={**os.environ, "TERM": "xterm", **variables})
    os.close(other)
    text = b""
    while True:
        try:
            piece = os.read(main, 65536)
        except OSError:
            break
        if not piece:
            break
        text += piece
    os.close(main)
    child.wait(60)
    return text


@pytest.mark.parametrize("variables,coloured", [({}, True), ({"NO_COLOR": "1"}, False),
                                                ({"TERM": "dumb"}, False)])
def test_colours_only_where_they_are_wanted(variables, coloured):
    assert (b"\033[" in on_a_terminal(**variables)) == coloured


@pytest.mark.parametrize("arguments", [["--nonsense"], ["something"], ["--json", "x"]])
def test_wrong_usage_is_named(arguments):
    done = doctor(*arguments)
    assert done.returncode == 2
    assert arguments[-1].lstrip("-") in done.stdout + done.stderr
