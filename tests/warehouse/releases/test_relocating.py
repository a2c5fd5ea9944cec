"""Test relocation: iosig reads a moved or copied warehouse at once, other readers after its metadata are rewritten."""

from __future__ import annotations

import shutil
from pathlib import Path

import fastavro
import polars as pl
import pytest
from pyiceberg.table import StaticTable

from iosig.warehouse.releases import releases, repairing, seals, verifying
from iosig.warehouse.releases.catalogue import open_catalogue
from iosig.warehouse.releases.locations import get_location, root_before
from iosig.warehouse.releases.relocating import relocate
from iosig.warehouse.store.store import Store
from tests.warehouse.releasing import keys, publish

JOBS = ["100", "80", "81", "91", "run"]


@pytest.fixture
def moved(two: Store, tmp_path: Path) -> Store:
    """Move the warehouse to a folder with a blank and a non-ASCII letter."""
    elsewhere = tmp_path / "deep ü" / "moved here"
    elsewhere.parent.mkdir()
    relocate(two)
    two.root.rename(elsewhere)
    return Store(elsewhere)


def static(store: Store) -> list[str]:
    table = StaticTable.from_metadata(str(store.tables / "jobs"))
    return sorted(table.scan().to_arrow()["job_id"].to_pylist())


@pytest.mark.slow
def test_moved_warehouse_is_readable_by_others_after_relocation(moved: Store) -> None:
    release = releases.find(moved, None)
    for cache in ("release_index", "snapshot_files"):
        shutil.rmtree(moved.root / cache)
    assert keys(moved, release, "jobs", "job_id") == JOBS
    with pytest.raises(FileNotFoundError):
        static(moved)
    data = {path: path.stat().st_mtime_ns for path in moved.root.rglob("*.parquet")}
    assert relocate(moved) > 50
    assert {path: path.stat().st_mtime_ns for path in moved.root.rglob("*.parquet")} == data
    assert static(moved) == JOBS
    assert root_before(moved) == get_location(moved)
    assert relocate(moved) == 0


@pytest.mark.slow
def test_no_metadata_name_the_old_folder_after_relocation(moved: Store, two: Store) -> None:
    relocate(moved)
    named = get_location(two).encode()
    for path in moved.root.rglob("*"):
        if path.suffix in (".json", ".text", ".sqlite"):
            assert named not in path.read_bytes(), path
        if path.suffix == ".avro":
            with path.open("rb") as file:
                reader = fastavro.reader(file)
                assert named.decode() not in str(list(reader)), path
                assert "field-id" in reader.metadata["avro.schema"]


def test_manifest_lists_have_lengths_of_manifests(moved: Store) -> None:
    relocate(moved)
    for name in ("jobs", "polls_daily", "releases"):
        table = open_catalogue(moved).load_table(("published", name))
        for manifest in table.current_snapshot().manifests(table.io):  # type: ignore[union-attr]
            assert manifest.manifest_length == Path(manifest.manifest_path.removeprefix("file://")).stat().st_size


@pytest.mark.slow
def test_publishing_in_a_copy_does_not_change_the_original(two: Store, tmp_path: Path) -> None:
    relocate(two)
    copy = Store(tmp_path / "copy")
    shutil.copytree(two.root, copy.root, symlinks=True)
    before = {path: path.stat().st_mtime_ns for path in two.root.rglob("*") if path.is_file()}
    publish(copy, "third", {"jobs": {9: ""}})
    assert static(copy) == ["100", "80", "81", "run"]
    assert {path: path.stat().st_mtime_ns for path in two.root.rglob("*") if path.is_file()} == before
    assert static(two) == JOBS


def test_old_releases_are_readable_by_tag_after_relocation(moved: Store) -> None:
    relocate(moved)
    first = releases.history(moved)[0]
    table = open_catalogue(moved).load_table(("published", "jobs"))
    scanned = pl.DataFrame(table.scan().use_ref(first.release_id).to_arrow())
    assert sorted(scanned["job_id"]) == ["80", "81", "90", "run"]


def test_damaged_unused_metadata_do_not_prevent_relocation(moved: Store) -> None:
    current = moved.tables / "jobs" / "metadata" / "version-hint.text"
    (old,) = (path for path in current.parent.glob("*.metadata.json") if not path.name.startswith(current.read_text()))
    content = old.read_bytes()[:500]
    old.write_bytes(content)
    assert relocate(moved)
    assert old.read_bytes() == content
    assert static(moved) == JOBS
    assert verifying.verify(moved) == []
    assert [found.path for found in verifying.verify(moved, is_all=True)] == [old.relative_to(moved.root).as_posix()]


def test_killed_relocation_causes_no_damage(moved: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def kill(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(seals, "replace_checksums", kill)
        with pytest.raises(KeyboardInterrupt):
            relocate(moved)
    assert verifying.verify(moved, is_all=True) == []
    twice = Store(moved.root.rename(moved.root.with_name("moved again")))
    assert verifying.verify(twice, is_all=True) == []
    assert [each.path for each in repairing.repair(twice)] == ["tables"]
    assert static(twice) == JOBS
    assert verifying.verify(twice, is_all=True) == []
