# SPDX-License-Identifier: Apache-2.0
import os
import tempfile

import pytest

import jail


def pytest_configure(config):
    config.addinivalue_line("markers", "timeout(seconds): the longest that a test may take")
    if "CAY_STATE" not in os.environ:
        os.environ["CAY_STATE"] = tempfile.mkdtemp(prefix="cay-escape-")


@pytest.fixture(scope="session", autouse=True)
def built():
    for path in (jail.CAY, jail.GUEST, jail.CANARY):
        if not os.path.exists(path):
            pytest.exit(f"'{path}' is not built", returncode=1)


@pytest.fixture(scope="session")
def facts():
    """What this machine gives a sandbox: layers, and by whom limits are held."""
    answer = jail.run("--json", "--", "/bin/true")
    assert answer.code == 0, answer
    return answer.document


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A current folder of the test's own; results land in it."""
    monkeypatch.chdir(tmp_path)
    return tmp_path
