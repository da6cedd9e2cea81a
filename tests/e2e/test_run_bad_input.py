# SPDX-License-Identifier: Apache-2.0
"""Wrong arguments: one sentence that names the thing and the right form, and nothing is left."""
import json
import os

import pytest

USAGE = [
    (["--memroy", "1G", "-c", "1"], "did you mean '--memory'"),
    (["--frobnicate", "-c", "1"], "unknown flag '--frobnicate'"),
    (["--memory", "0", "-c", "1"], "--memory '0' is zero"),
    (["--memory", "-5M", "-c", "1"], "--memory '-5M' is negative"),
    (["--memory", "lots", "-c", "1"], "--memory 'lots' is not a number"),
    (["--memory", "99999999999T", "-c", "1"],
     "--memory '99999999999T' is too large; give 16M to 1024G"),
    (["--memory", "1K", "-c", "1"], "--memory '1K' is too small; give 16M to 1024G"),
    (["--memory", "nan", "-c", "1"], "is not a number"),
    (["--disk", "1.5.5G", "-c", "1"], "--disk '1.5.5G'"),
    (["--timeout", "0s", "-c", "1"], "--timeout '0s' is zero"),
    (["--timeout", "5 weeks", "-c", "1"], "a unit that does not exist"),
    (["--cpu-time", "-1s", "-c", "1"], "is negative"),
    (["--cpus", "0", "-c", "1"], "--cpus '0' is zero"),
    (["--pids", "1.5", "-c", "1"], "is not a whole number"),
    (["--open-files", "1", "-c", "1"], "--open-files '1' is too small; give 16 to"),
    (["--output", "1T", "-c", "1"], "--output '1T' is too large; give 1K to 64M"),
    (["--profile", "huge", "-c", "1"], "tiny, small, standard or large"),
    (["--require", "magic", "-c", "1"], "the layer 'magic' does not exist"),
    (["--isolation", "chroot", "-c", "1"], "the isolation 'chroot' does not exist"),
    (["--in", ".", "-c", "1"], "is a directory"),
    (["--in", "f", "--in", "sub/f", "-c", "1"], "two --in files have the name 'f'"),
    (["--out", "/etc/*", "-c", "1"], "--out '/etc/*'"),
    (["--out", "../x", "-c", "1"], "--out '../x' is not a pattern below /workspace"),
    (["--out", "a/../../x=d", "-c", "1"], "is not a pattern below /workspace"),
    (["f", "-c", "1"], "'f' and --code: give one of them"),
    (["--workspace", "f", "-c", "1"], "'f' is not a directory"),
    (["--workspace", ".:xx", "-c", "1"], "neither :ro nor :rw"),
    (["--workspace", "none", "--in", "f", "-c", "1"], "need a workspace"),
    (["-e", "1X=2", "-c", "1"], "is not the name of a variable"),
    (["-w", "relative", "-c", "1"], "must be an absolute path"),
    (["-c"], "needs a value"),
    (["."], "is a directory"),
    ([], "nothing to run"),
    (["--"], "nothing to run"),
]
FAILURES = [
    (["missing.py"], "'missing.py' does not exist"),
    (["--in", "missing", "-c", "1"], "'missing'"),
    (["--workspace", "missing", "-c", "1"], "'missing'"),
    (["--image", "missing", "-c", "1"], "'missing'"),
    (["--env-file", "missing", "-c", "1"], "'missing'"),
    (["--isolation", "gvisor", "-c", "1"], "'gvisor' is not available"),
    (["--isolation", "microvm", "-c", "1"], "'microvm' is not available"),
    (["--lang", "python@2.0", "-c", "1"], "python@2.0"),
]


def check(cay, args, code, words):
    cay.write("f", "x")
    cay.write("sub/f", "y")
    names = sorted(os.listdir(cay.folder))
    before = cay.receipts()
    done = cay.run(*args)
    assert done.code == code, done
    assert words in done.said, done
    assert done.said.count("\n") == 1 and done.said.startswith("cay: "), done
    assert done.out == b""
    assert sorted(os.listdir(cay.folder)) == names
    assert cay.receipts() == before


@pytest.mark.parametrize("args,words", USAGE)
def test_wrong_usage_is_2(cay, args, words):
    check(cay, args, 2, words)


@pytest.mark.parametrize("args,words", FAILURES)
def test_what_is_not_there_is_125(cay, args, words):
    check(cay, args, 125, words)


def test_code_over_16_mib_is_refused(cay):
    cay.write("big.py", b"#" * ((16 << 20) + 1))
    done = cay.run("big.py")
    assert done.code == 2 and "larger than 16 MiB" in done.said
    done = cay.run("-", stdin=b"#" * ((16 << 20) + 1))
    assert done.code == 2 and "larger than 16 MiB" in done.said


def test_arguments_over_1_mib_are_refused(cay):
    done = cay.run("--", "true", *["x" * 100000] * 11)
    assert done.code == 2 and "at most 1 MiB" in done.said


def test_errors_are_documents_with_json(cay):
    done = cay.run("--nonsense", "--json")
    assert done.code == 2 and done.err == b""
    assert json.loads(done.out)["error"]["code"] == "invalid"
    done = cay.json("--isolation", "gvisor", "-c", "1")
    assert done.code == 125
    assert json.loads(done.out)["error"]["code"] == "isolation_unavailable"


def test_names_cannot_reach_the_terminal(cay):
    done = cay.run("\x1b[31mred\x07.py")
    assert done.code == 125
    assert b"\x1b" not in done.err and b"\\x1b[31m" in done.err


def test_a_state_directory_that_cannot_be_used(cay):
    cay.write("state", "a file")
    done = cay.run("-c", "1", env={"CAY_STATE": str(cay.folder / "state")})
    assert done.code == 125 and "the state directory" in done.said
    done = cay.run("-c", "1", env={"CAY_STATE": "relative"})
    assert done.code != 0 and "must be an absolute path" in done.said
