# SPDX-License-Identifier: Apache-2.0
import os

import pytest


@pytest.fixture(scope="session")
def role():
    """root or user: as whom the suite runs this time."""
    return os.environ["CAY_VM_ROLE"]
