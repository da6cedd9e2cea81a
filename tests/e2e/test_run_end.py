# SPDX-License-Identifier: Apache-2.0
"""How a run ends: cause, flags, exit code, and a receipt however it was."""
import json
import signal
import time

import pytest

SLEEP = "import time\nprint('ready', flush=True)\ntime.sleep(60)"


def interrupt(cay, *numbers, code=SLEEP, flags=()):
    """Starts, waits for the first line, sends the signals; the answer and how long it took."""
    process = cay.start("run", *flags, "-c", code)
    assert process.stdout.readline() == b"ready\n"
    began = time.monotonic()
    for number in numbers:
        process.send_signal(number)
        time.sleep(0.2)
    out, err = process.communicate(timeout=10)
    return process.returncode, out, err.decode(), time.monotonic() - began


def test_a_timeout_is_124_and_says_so(cay):
    done = cay.json("--timeout", "500ms", "-c", SLEEP)
    doc = done.document
    assert done.code == 124 and doc["cause"] == "timeout"
    assert doc["cause_detail"]["limit"] == 500
    assert doc["cause_detail"]["number"] >= 500
    assert "500 ms" in doc["cause_detail"]["message"]
    assert doc["stdout"] == "ready\n"
    assert done.seconds < 5


def test_a_signal_is_128_plus_n(cay):
    done = cay.json("--", "sh", "-c", "kill -SEGV $$")
    assert done.code == 139
    assert (done.document["cause"], done.document["signal"]) == ("signaled", 11)


def test_nothing_survives_the_program(cay):
    done = cay.run("--", "sh", "-c", "sleep 60 & echo started")
    assert (done.code, done.out) == (0, b"started\n")
    assert done.seconds < 10


def test_one_interrupt_reaches_the_program(cay):
    code, _, err, seconds = interrupt(cay, signal.SIGINT)
    assert code == 130 and "interrupted" in err and "KeyboardInterrupt" in err
    assert seconds < 5


def test_a_program_may_catch_the_interrupt(cay):
    code, out, err, _ = interrupt(cay, signal.SIGINT, code=(
        "import time\nprint('ready', flush=True)\n"
        "try:\n time.sleep(60)\nexcept KeyboardInterrupt:\n print('saved')"))
    assert (code, out, err) == (0, b"saved\n", "")


def test_two_interrupts_end_everything(cay):
    code, _, err, seconds = interrupt(cay, signal.SIGINT, signal.SIGINT, code=(
        "import signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "print('ready', flush=True)\ntime.sleep(60)"))
    assert code == 130 and "cancelled" in err
    assert seconds < 5


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_other_signals_cancel(cay, number):
    before = cay.receipts()
    code, _, err, seconds = interrupt(cay, number)
    assert code == 128 + number and "cancelled" in err
    assert seconds < 5
    assert cay.receipts() == before + 1


def test_a_reader_that_goes_away_ends_the_run(cay):
    process = cay.start("run", "-c", "while True: print('x' * 1000)")
    process.stdout.readline()
    process.stdout.close()
    assert process.wait(timeout=10) == 141
    process.stderr.close()


def test_a_reader_that_stops_reading_cannot_stop_the_clock(cay):
    process = cay.start("run", "--timeout", "1s", "-c", "while True: print('x' * 1000)")
    assert process.wait(timeout=15) == 124
    process.stdout.close()
    process.stderr.close()


def test_cpu_time_is_124(cay):
    done = cay.json("--cpu-time", "500ms", "--timeout", "30s", "-c", "while True: pass")
    assert done.code == 124 and done.document["cause"] == "cpu_time", done
    assert done.seconds < 10


def test_out_of_memory_is_recognised(cay):
    done = cay.json("--memory", "64M", "--timeout", "30s", "-c",
                    "x = []\nwhile True: x.append(bytearray(1 << 20))")
    doc = done.document
    by = doc["limits"]["memory_bytes"]["enforced_by"]
    if not by.startswith("cgroup"):
        pytest.skip(f"memory is held by {by} here")
    assert doc["cause"] == "oom", doc["cause_detail"]
    assert done.code == 137
    assert "64 MiB" in doc["cause_detail"]["message"]


def test_out_of_memory_of_a_child_is_recognised(cay):
    done = cay.json("--memory", "64M", "--timeout", "30s", "--", "sh", "-c",
                    "python3 -c 'x=[]\nwhile True: x.append(bytearray(1<<20))'; echo after; exit 4")
    doc = done.document
    if not doc["limits"]["memory_bytes"]["enforced_by"].startswith("cgroup"):
        pytest.skip("memory is not held by a cgroup here")
    assert (doc["cause"], done.code, doc["stdout"]) == ("oom", 4, "after\n")
    assert "a child process" in doc["cause_detail"]["message"]


def test_too_many_processes_are_flagged(cay):
    done = cay.json("--pids", "16", "--", "sh", "-c",
                    "for i in $(seq 40); do sleep 5 & done 2>/dev/null; exit 0")
    by = done.document["limits"]["pids"]["enforced_by"]
    if not by.startswith("cgroup"):
        pytest.skip(f"processes are held by {by} here")
    assert done.flags["pids"]["limit"] == 16
    assert done.flags["pids"]["number"] > 0


def test_a_full_workspace_is_flagged(cay):
    done = cay.json("--disk", "4M", "--", "sh", "-c", "head -c 64M /dev/zero > big; exit 0")
    assert done.flags["disk"]["limit"] == 4 << 20, done


def test_a_required_layer_that_exists_is_held(cay):
    doc = cay.json("--require", "seccomp,no_new_privs", "--", "true").document
    assert {"seccomp", "no_new_privs"} <= set(doc["isolation"]["layers"]["held"])


def test_every_run_leaves_exactly_one_receipt(cay):
    before = cay.receipts()
    cay.run("--", "true")
    cay.run("--", "sh", "-c", "exit 3")
    cay.run("--", "no-such-program")
    cay.run("--timeout", "200ms", "--", "sleep", "5")
    assert cay.receipts() == before + 4


def test_a_set_up_that_fails_leaves_a_receipt(cay):
    before = cay.receipts()
    done = cay.json("--", "true", env={"CAY_WARDEN": "/bin/false"})
    doc = json.loads(done.out)
    assert done.code == 125 and doc["cause"] == "setup_failed" and doc["error"]["message"]
    assert cay.receipts() == before + 1
    assert cay("receipt", "verify").code == 0


def test_without_a_receipt_there_is_no_success(cay):
    keys = cay.folder / "state"
    keys.mkdir(mode=0o700)
    cay.own(keys)
    (keys / "receipts").write_text("in the way")
    done = cay.run("--", "echo", "ran", env={"CAY_STATE": str(keys)})
    assert done.code == 125 and "receipt" in done.said
    assert b"ran" not in done.out


def test_the_shortest_run_has_used_something(cay):
    usage = cay.json("--", "/bin/true").document["usage"]
    assert usage["peak_memory_bytes"] > 0 and usage["processes"] >= 1, usage
