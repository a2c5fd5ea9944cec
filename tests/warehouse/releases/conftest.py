"""Provide a warehouse with two small releases."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from iosig.warehouse.store.store import Store
from tests.warehouse.releasing import FIRST, SECOND, publish


@pytest.fixture(scope="session")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create a warehouse with two releases, which tests copy."""
    store = Store(tmp_path_factory.mktemp("published") / "warehouse")
    publish(store, "first", FIRST, inputs=("l1", "l2"))
    publish(store, "second", SECOND, inputs=("l3",))
    return store.root


@pytest.fixture
def two(published: Path, tmp_path: Path) -> Store:
    """Return a private copy of the warehouse with two releases."""
    shutil.copytree(published, tmp_path / "two", symlinks=True)
    return Store(tmp_path / "two")
