# SPDX-License-Identifier: Apache-2.0
"""Guests that need nothing but a sandbox: each must be refused everything it tries."""

import socket
import subprocess

import pytest

import jail

ALONE = [
    "D002", "D003", "D005", "D006", "D007", "D008", "D011", "D012", "D013", "D014", "D019", "D021",
    "D027", "D028", "D029", "D036", "D039", "D040", "D042", "D043", "D046", "D047", "D052", "D053",
    "D054", "D055", "D056", "D059", "D060", "D062", "D064", "D065", "D066", "D067", "D069", "D070",
    "D073", "D074", "D075", "D079", "D080", "D115", "D116",
    "core-hostread", "core-remount", "core-ptrace", "core-families", "core-cgroupfs", "ids",
]


@pytest.mark.parametrize("probe", ALONE)
def test_guest(probe, folder):
    jail.held(jail.guest(probe))


# Outside they would succeed; a guest that cannot fail proves nothing.
OUTSIDE = ["D001", "D008", "D013", "D027", "D052", "D055", "D056", "D059", "D060", "D067", "D072"]


@pytest.mark.parametrize("probe", OUTSIDE)
def test_guest_sees_that_it_is_outside(probe, tmp_path):
    with open(tmp_path / "inherited", "w") as file:
        answer = subprocess.run([jail.GUEST, probe, socket.gethostname()], capture_output=True,
                                pass_fds=[file.fileno()], timeout=20, check=False)
    assert answer.returncode == 1, answer
    assert b'"ok": false' in answer.stdout


def test_guest_that_could_do_harm_does_not_start_outside():
    listed = subprocess.run([jail.GUEST], capture_output=True, timeout=20, check=True).stdout.decode()
    probes = [line.split()[0] for line in listed.splitlines() if "harmless" not in line]
    assert len(probes) > 40
    for probe in probes:
        answer = subprocess.run([jail.GUEST, probe], capture_output=True, timeout=20, check=False)
        assert answer.returncode == 3, probe


def test_every_guest_is_tried():
    listed = subprocess.run([jail.GUEST], capture_output=True, timeout=20, check=True).stdout.decode()
    text = "".join(path.read_text() for path in jail.HERE.glob("test_*.py"))
    for probe in (line.split()[0] for line in listed.splitlines()):
        assert f'"{probe}"' in text, probe
