"""What pyiceberg does otherwise than we need it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyiceberg.manifest import ManifestFile
from pyiceberg.table.update import snapshot

from iosig.warehouse.store.store import Store
from tests.warehouse.releasing import FIRST, SECOND, keys, publish


@pytest.mark.slow
def test_what_goes_is_found_whatever_pyiceberg_thinks_of_a_manifest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its evaluator is one for all threads: one of them may be told of another one's manifest."""

    def passes_over(*_: object) -> Callable[[ManifestFile], bool]:
        return lambda manifest: False

    monkeypatch.setattr(snapshot, "manifest_evaluator", passes_over)
    store = Store(tmp_path / "warehouse")
    publish(store, "first", FIRST)
    second = publish(store, "second", SECOND)
    assert keys(store, second, "jobs", "job_id") == ["100", "80", "81", "91", "run"]
