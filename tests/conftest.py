"""Configure all tests: temporary files, examples, the order of files, and the folder of real data."""

from __future__ import annotations

import gc
import os
import shutil
import sys
from pathlib import Path

import pytest
from hypothesis import settings

from tests.budget import examples

# Hundreds of processes import the same modules, so compiled bytecode is kept, whatever the environment says.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# pytest imports readline, which sets a terminal of 80 columns for all later processes, where there is no terminal.
for _name in ("COLUMNS", "LINES"):
    os.environ.pop(_name, None)
    os.unsetenv(_name)

# Temporary files are in memory if there is enough of it, because disks are slow.
_MEMORY, _ENOUGH_BYTES = Path("/dev/shm"), 6 * 2**30
if _MEMORY.is_dir() and os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free > _ENOUGH_BYTES:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(_MEMORY))

# A worker holds thousands of tests, which make garbage collection slow.
gc.set_threshold(50_000, 20, 50)

# number of examples of properties without settings of their own
settings.register_profile("iosig", max_examples=examples(100))
settings.load_profile("iosig")

pytest_plugins = ["tests.browsers", "tests.nights"]

_ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real measurements (`IOSIG_TEST_DATA`, or beside the checkout); skips where it is absent."""
    folder = Path(os.environ.get("IOSIG_TEST_DATA", _ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip("the real measurements are not on this machine (set IOSIG_TEST_DATA)")
    return folder


#: folders of the longest tests, which start first, so that the workers end together
_FIRST = ("flows", "cli", "answers", "studies", "reports", "warehouse")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Order the files; the tests of a file keep their order."""
    places = [str(_ROOT / "tests" / room) for room in _FIRST]

    def place(item: pytest.Item) -> int:
        path = str(item.path)
        return next((number for number, start in enumerate(places) if path.startswith(start)), len(places))

    items.sort(key=place)
