# SPDX-License-Identifier: Apache-2.0
"""The state directory is our own, and a directory of somebody else is left as it is."""
import os

import pytest


def refuses_state(cay, path):
    done = cay.run("-c", "1", env={"CAY_STATE": str(path)})
    assert done.code == 125 and "set CAY_STATE to a directory of your own" in done.said, done
    assert done.said.count("\n") == 1


def test_a_state_directory_that_is_there_is_never_changed(cay):
    state = cay.folder / "state"
    state.mkdir()
    cay.own(state)
    for mode in (0o777, 0o1777, 0o770, 0o775):
        state.chmod(mode)
        refuses_state(cay, state)
        assert state.stat().st_mode & 0o7777 == mode and not os.listdir(state)
    state.chmod(0o755)
    assert cay.run("--", "true", env={"CAY_STATE": str(state)}).code == 0
    assert state.stat().st_mode & 0o7777 == 0o755


def test_a_state_directory_is_not_a_link(cay):
    target = cay.folder / "target"
    target.mkdir(mode=0o755)
    cay.own(target)
    os.symlink("target", cay.folder / "state")
    refuses_state(cay, cay.folder / "state")
    refuses_state(cay, f"{cay.folder}/state/")
    assert target.stat().st_mode & 0o777 == 0o755 and not os.listdir(target)
    # A link above it leads to parents that are looked at in its place.
    assert cay.run("--", "true", env={"CAY_STATE": f"{cay.folder}/state/own"}).code == 0
    assert (target / "own").stat().st_mode & 0o7777 == 0o700


def test_a_state_directory_below_what_others_may_swap(cay):
    shared = cay.folder / "shared"
    shared.mkdir()
    cay.own(shared)
    shared.chmod(0o777)
    refuses_state(cay, shared / "state")
    refuses_state(cay, shared / "deep" / "state")
    assert not os.listdir(shared)
    shared.chmod(0o1777)
    assert cay.run("--", "true", env={"CAY_STATE": str(shared / "deep" / "state")}).code == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make what belongs to somebody else")
def test_a_state_directory_below_somebody_elses(cay):
    other = cay.folder / "other"
    other.mkdir(mode=0o755)
    os.chown(other, 12345, 12345)
    (other / "state").mkdir(mode=0o700)
    cay.own(other / "state")
    refuses_state(cay, other / "state")
    refuses_state(cay, other)
