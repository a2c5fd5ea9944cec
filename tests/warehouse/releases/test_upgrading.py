"""Upgrading: a stored warehouse of an older form becomes one of this form, with all that it held."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path

import pytest
import zstandard
from pyiceberg.table import StaticTable

from iosig.warehouse.errors import UsageError
from iosig.warehouse.releases import holds, releases, upgrading
from iosig.warehouse.releases.upgrading import needs, upgrade
from iosig.warehouse.releases.verifying import verify
from iosig.warehouse.store import landing
from iosig.warehouse.store.form import FORM, form_of
from iosig.warehouse.store.store import Store, write_json
from tests.budget import one_in
from tests.warehouse.releasing import keys, publish

#: as iosig 0.1 left it: two job logs, two releases, a way back to the first, and one on top of that
IDS = ["2018-02-09-first", "2018-02-09-second", "2018-02-09-first-again1", "2018-02-09-third"]
JOBS = [
    ["80", "81", "90", "run"],
    ["100", "80", "81", "91", "run"],
    ["80", "81", "90", "run"],
    ["82", "90", "run"],
]


def unpack(store: Store) -> None:
    """Unpack the warehouse of form 1."""
    packed = (Path(__file__).parent / "form-1.tar.zst").read_bytes()
    with tarfile.open(fileobj=io.BytesIO(zstandard.ZstdDecompressor().decompressobj().decompress(packed))) as archive:
        archive.extractall(store.root.parent, filter="data")


@pytest.fixture
def old(tmp_path: Path) -> Store:
    store = Store(tmp_path / "warehouse")
    unpack(store)
    return store


def assert_upgraded(store: Store) -> None:
    found = releases.history(store)
    assert [release.release_id for release in found] == IDS
    assert [release.sequence for release in found] == [1, 2, 3, 4]
    assert {release.verdict for release in found} == {"passed"}
    assert [keys(store, release, "jobs", "job_id") for release in found] == JOBS
    assert [lot.sequence for lot in landing.ledger(store)] == [1, 2]
    assert verify(store, is_all=True) == []
    jobs = StaticTable.from_metadata(str(store.tables / "jobs"))
    for release, expected in zip(IDS, JOBS, strict=True):
        assert sorted(jobs.scan().use_ref(release).to_arrow()["job_id"].to_pylist()) == expected
    assert StaticTable.from_metadata(str(store.tables / "classes")).scan().to_arrow().num_rows == 0


def test_an_older_form_is_refused_with_what_to_do(old: Store) -> None:
    assert form_of(old) == 1
    for ask in (releases.history, landing.ledger):
        with pytest.raises(UsageError, match="iosig upgrade"):
            ask(old)
    with pytest.raises(UsageError, match="iosig upgrade"):
        publish(old, "fourth", {"jobs": {8: ""}})


@pytest.mark.slow
@pytest.mark.long
def test_it_keeps_releases_ids_and_verdicts(old: Store) -> None:
    before = {path.name for path in old.tables.rglob("data/*.parquet")}
    found = needs(old)
    assert found is not None
    assert (found.form, found.read_file_count, found.written_bytes > 0) == (1, 2, True)
    told: list[tuple[int, int]] = []
    upgrade(old, lambda *done: told.append(done))
    assert told[-1] == (4, 4)
    assert form_of(old) == FORM
    assert needs(old) is None
    assert_upgraded(old)
    assert before <= {path.name for path in old.tables.rglob("data/*.parquet")}
    fifth = publish(old, "fifth", {"jobs": {8: "job_id \n 83"}})
    assert (fifth.sequence, fifth.parent_release_id) == (5, IDS[-1])
    assert keys(old, fifth, "jobs", "job_id") == ["83", "90", "run"]
    assert sorted(path.name for path in (old.root / "latest" / "jobs").glob("*/*.parquet"))
    assert holds.roll_back(old, IDS[1])[0].sequence == 6
    assert verify(old, is_all=True) == []


PLACES = one_in(2, ["relocate", "_order_releases", "mark_form", "widen"], slow=1)


def lying_in(store: Store) -> dict[str, bytes]:
    """All that lies in a warehouse, but what holds it while somebody writes."""
    paths = (path for path in store.root.rglob("*") if path.is_file() and path.suffix != ".lock")
    return {path.relative_to(store.root).as_posix(): path.read_bytes() for path in paths}


def killed_at(old: Store, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def kill(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(upgrading, place, kill)
        with pytest.raises(KeyboardInterrupt):
            upgrade(old)


@pytest.mark.parametrize("place", PLACES)
def test_one_that_fails_leaves_all_as_it_was(old: Store, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = lying_in(old)
    killed_at(old, place, monkeypatch)
    assert lying_in(old) == before
    assert form_of(old) == 1


@pytest.mark.slow
@pytest.mark.long
def test_what_is_released_and_landed_cannot_be_written_to_then(old: Store) -> None:
    upgrade(old)
    paths = [*old.tables.glob("*/data/*.parquet"), *old.landed.glob("*/*.parquet")]
    assert paths
    assert not any(path.stat().st_mode & 0o222 for path in paths)


def test_a_newer_form_is_refused_with_what_reads_it(tmp_path: Path) -> None:
    store = Store(tmp_path / "new")
    write_json({"form": FORM + 1, "read_by": "9.9"}, store.root / "form.json")
    for ask in (releases.history, landing.ledger):
        with pytest.raises(UsageError, match=r"use iosig 9\.9 or later"):
            ask(store)
    assert json.loads((store.root / "form.json").read_text())["form"] == FORM + 1
