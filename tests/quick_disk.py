"""A fixture for tests of whole nights, which would wait for the disk 150 times each."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="module", autouse=True)
def no_waiting_for_the_disk() -> Iterator[None]:
    """Let files be safe only from the end of a process, not of the machine: a night waits for the disk 150 times."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        # what is no open file is still told
        monkeypatch.setattr(os, "fsync", os.fstat)
        yield
