# SPDX-License-Identifier: Apache-2.0
"""D078: with one layer left out the others still hold.

Needs a build with -Dlayer_switches=true; CAY_SWITCH names it.  Other builds do not listen."""

import os
import pathlib

import pytest

import jail

# The switch, and the layer that the receipt then calls absent.
LAYERS = {"seccomp": "seccomp", "landlock": "landlock", "caps": "caps", "mounts": "root", "userns": "user_ns",
          "rlimits": "rlimits"}
PROBES = ["core-hostread", "core-remount", "core-ptrace", "core-families", "core-cgroupfs"]
SWITCH = pathlib.Path(os.environ.get("CAY_SWITCH", jail.TOP / "build-switch")) / "cay"


def without(layer, probe, cay=SWITCH):
    paths = [os.environ["CAY_STATE"], jail.TOP] if probe == "core-hostread" else []
    return jail.guest(probe, *paths, cay=cay, env={"CAY_TEST_WITHOUT": layer})


@pytest.fixture(scope="module", autouse=True)
def switches():
    if not SWITCH.exists():
        pytest.skip("there is no build with switches for layers")


def skip_where_impossible(layer):
    if layer == "userns" and not jail.IS_ROOT:
        pytest.skip("an ordinary user has no sandbox without a user namespace")


def seccomp_mode(cay):
    answer = jail.run("--", "/bin/grep", "^Seccomp:", "/proc/self/status", cay=cay,
                      env={"CAY_TEST_WITHOUT": "seccomp"})
    return answer.text.split()[-1] if answer.code == 0 else answer


def test_D078_the_switch_works_in_its_build_and_in_no_other(folder):
    assert seccomp_mode(SWITCH) == "0"
    assert seccomp_mode(jail.CAY) == "2"


@pytest.mark.parametrize("probe", PROBES)
@pytest.mark.parametrize("layer", LAYERS)
def test_D078_without_one_layer_the_others_hold(folder, layer, probe):
    skip_where_impossible(layer)
    jail.held(without(layer, probe))


@pytest.mark.parametrize("layer", LAYERS)
def test_D078_the_layer_is_really_out_and_the_receipt_says_so(folder, layer):
    skip_where_impossible(layer)
    answer = jail.run("--json", "--", "/bin/true", cay=SWITCH, env={"CAY_TEST_WITHOUT": layer})
    assert answer.code == 0, answer
    layers = answer.document["isolation"]["layers"]
    assert LAYERS[layer] in layers["absent"] and LAYERS[layer] not in layers["held"], layers
