"""What all tests share: where the real data lies, and quiet libraries."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

_ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real measurements (`IOSIG_TEST_DATA`, or beside the checkout); skips where it is absent."""
    folder = Path(os.environ.get("IOSIG_TEST_DATA", _ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip("the real measurements are not on this machine (set IOSIG_TEST_DATA)")
    return folder
