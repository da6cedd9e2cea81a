# SPDX-License-Identifier: Apache-2.0
"""A plain run: what comes out, what the document says, and what is refused."""
import json


def test_doctor_sees_what_this_machine_has(cay):
    done = cay("doctor")
    assert done.returncode in (0, 1), done.stderr
    assert "Landlock" in done.stdout or "landlock" in done.stdout
    json.loads(cay("doctor", "--json").stdout)


def test_a_program_runs(cay):
    done = cay("run", "--", "/bin/true")
    assert done.returncode == 0, done.stderr


def test_python_prints(cay):
    done = cay("run", "-c", "print(6 * 7)")
    assert (done.returncode, done.stdout) == (0, "42\n"), done.stderr


def test_node_prints(cay):
    done = cay("run", "--lang", "node", "-c", "console.log(6 * 7)")
    assert (done.returncode, done.stdout) == (0, "42\n"), done.stderr


def test_bash_and_c_run(cay):
    assert cay("run", "--lang", "bash", "-c", "echo $((6 * 7))").stdout == "42\n"
    code = '#include <stdio.h>\nint main(void) { puts("42"); return 3; }'
    done = cay("run", "--lang", "c", "-c", code)
    assert (done.returncode, done.stdout) == (3, "42\n"), done.stderr


def test_the_exit_code_is_the_programs_own(run):
    ran = run("--", "/bin/sh", "-c", "exit 7")
    assert (ran.code, ran.cause, ran.document["exit_code"]) == (7, "exited", 7)


def test_a_signal_is_told(run):
    ran = run("--", "/bin/sh", "-c", "kill -TERM $$")
    assert (ran.code, ran.cause) == (128 + 15, "signaled")


def test_a_missing_program_is_127(cay):
    assert cay("run", "--", "/no/such/program").returncode == 127


def test_the_document_has_its_parts(run):
    ran = run("-c", "import sys; print('out'); print('err', file=sys.stderr)")
    document = ran.document
    assert document["stdout"] == "out\n" and document["stderr"] == "err\n"
    for part in ("cause", "flags", "usage", "limits", "receipt", "files", "start", "isolation"):
        assert part in document, part
    assert ran.usage["wall_ms"] > 0 and ran.usage["cpu_ms"] > 0
    assert ran.usage["peak_memory_bytes"] > 1 << 20


def test_cgroup_v2_holds_the_limits(run):
    ran = run("--", "/bin/true")
    assert ran.document["isolation"]["cgroup_version"] == 2
    assert ran.document["isolation"]["layers"]["absent"] == []
    for limit in ("memory_bytes", "cpu_millis", "pids"):
        assert ran.enforced_by(limit) == "cgroup2", ran.document["limits"]


def test_results_come_back(run, tmp_path):
    code = "open('/workspace/output/made.txt', 'w').write('here')"
    ran = run("-c", code, cwd=tmp_path)
    assert (tmp_path / "made.txt").read_text() == "here"
    assert [file["path"] for file in ran.document["files"]] == ["made.txt"]
    assert ran.document["files"][0]["size"] == 4


def test_a_tier_that_is_not_here_is_refused(cay):
    done = cay("run", "--isolation", "gvisor", "--", "/bin/true")
    assert done.returncode == 125
    assert "isolation_unavailable" in cay("run", "--json", "--isolation", "gvisor", "--",
                                          "/bin/true").stdout
    assert "gvisor" in done.stderr


def test_receipts_verify(cay, run):
    for word in ("one", "two", "three"):
        run("--", "/bin/echo", word)
    done = cay("receipt", "verify")
    assert done.returncode == 0, done.stdout + done.stderr
