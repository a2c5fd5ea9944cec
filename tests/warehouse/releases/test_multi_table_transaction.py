"""Test transactions over several tables: they are atomic, and each table gets a single new version."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

import pytest
from pyiceberg.exceptions import CommitFailedException

from iosig.warehouse.contracts import table
from iosig.warehouse.releases.catalogue import make_current, open_catalogue, open_transaction, replace, tag
from iosig.warehouse.releases.locations import metadata_locations
from iosig.warehouse.store.store import Store

_NAMES = ("applications", "classes")


@pytest.fixture
def made(tmp_path: Path) -> Store:
    """Create a warehouse with two empty tables."""
    store = Store(tmp_path)
    with open_transaction(store) as catalogue:
        store.files.each(lambda name: replace(catalogue, table(name), [], days=None, tag="first"), _NAMES)
    return store


def metadata(store: Store) -> dict[str, list[str]]:
    return {name: sorted(path.name for path in store.tables.glob(f"{name}/metadata/*.json")) for name in _NAMES}


def test_several_changes_in_transaction_make_a_single_version(made: Store) -> None:
    before = metadata_locations(made)
    assert {len(names) for names in metadata(made).values()} == {1}
    with open_transaction(made) as catalogue:
        shown = replace(catalogue, table("classes"), [], days=None, tag="second")
        tag(catalogue, "classes", shown.snapshot_id, "third")
        make_current(catalogue, "classes", shown.snapshot_id)
        assert metadata_locations(made) == before, "nobody sees it before all is done"
    after = metadata_locations(made)
    assert after["applications"] == before["applications"]
    assert len(metadata(made)["classes"]) == 2
    told = json.loads(Path(after["classes"].removeprefix("file://")).read_text())
    assert [each["metadata-file"] for each in told["metadata-log"]] == [before["classes"]]
    assert {"first", "second", "third"} <= set(told["refs"])


def test_failed_transaction_changes_nothing(made: Store) -> None:
    before, files = metadata_locations(made), metadata(made)
    with suppress(KeyboardInterrupt), open_transaction(made) as catalogue:
        tag(catalogue, "classes", replace(catalogue, table("classes"), [], days=None, tag="x").snapshot_id, "second")
        raise KeyboardInterrupt
    assert (metadata_locations(made), metadata(made)) == (before, files)
    with open_transaction(made) as catalogue:
        replace(catalogue, table("classes"), [], days=None, tag="second")
    assert metadata_locations(made)["classes"] != before["classes"]


def test_concurrent_change_makes_transaction_fail(made: Store) -> None:
    heads = {name: each.metadata.current_snapshot_id for name, each in open_catalogue(made).all_tables().items()}

    def change_moved() -> None:
        with open_transaction(made) as catalogue:
            for name, snapshot_id in heads.items():
                tag(catalogue, name, snapshot_id or 0, "second")
            assert catalogue._gathered is not None
            catalogue._gathered["classes"].found.metadata_location += ".moved"

    with pytest.raises(CommitFailedException, match="another process"):
        change_moved()
    assert all("second" not in each.metadata.refs for each in open_catalogue(made).all_tables().values())
