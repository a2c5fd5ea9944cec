"""Test expiry: files of expired releases are deleted, except files that a kept release references."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from pyiceberg.table import StaticTable

from iosig.warehouse.errors import MachineFault, UsageError
from iosig.warehouse.releases import expiring, holds, releases, snapshots
from iosig.warehouse.releases.reading import open_release
from iosig.warehouse.releases.releases import Release
from iosig.warehouse.releases.verifying import verify
from iosig.warehouse.store.store import Store
from tests.budget import examples, one_in
from tests.warehouse.releasing import keys, publish, read, supersede

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def grown(published: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create five releases, which tests copy; each recomputes a day and all applications."""
    store = Store(tmp_path_factory.mktemp("grown") / "warehouse")
    shutil.copytree(published, store.root, symlinks=True)
    for number in (3, 4, 5):
        applications = {None: f"application_id \n a/{number}"}
        publish(store, f"n{number}", {"jobs": {9: f"job_id \n {number}"}, "applications": applications})
    return store.root


@pytest.fixture
def five(grown: Path, tmp_path: Path) -> Store:
    """Return a private copy of the warehouse with five releases."""
    shutil.copytree(grown, tmp_path / "five", symlinks=True)
    return Store(tmp_path / "five")


def files_in(store: Store) -> set[str]:
    return {path.relative_to(store.root).as_posix() for path in store.tables.rglob("*") if path.is_file()}


def ids(store: Store) -> list[str]:
    return [release.release_id for release in releases.history(store)]


def jobs(store: Store, release: Release) -> list[object]:
    return keys(store, release, "jobs", "job_id")


def test_expired_releases_lose_tags_snapshots_and_files(five: Store) -> None:
    before = {release.release_id: jobs(five, release) for release in releases.history(five)[-2:]}
    old = releases.history(five)[:3]
    freed = expiring.maintain(five, 2)
    assert (freed.release_ids, freed.file_count) == (tuple(release.release_id for release in old), 0)
    count, size = expiring.remove(five, grace_s=0)
    assert count > 10
    assert size > 1000
    assert expiring.remove(five, grace_s=0) == (0, 0)
    assert {release.release_id: jobs(five, release) for release in releases.list_readable(five)} == before
    assert ids(five)[:3] == [release.release_id for release in old], "their rows stay"
    with pytest.raises(UsageError, match="expired on"):
        releases.find(five, old[0].release_id)
    with pytest.raises(UsageError, match="expired on"):
        holds.roll_back(five, old[0].release_id)
    table = StaticTable.from_metadata(str(five.tables / "jobs"))
    assert set(table.refs()) == {"main", *before}
    assert len(table.snapshots()) == 2
    assert sorted(table.scan().to_arrow()["job_id"].to_pylist()) == list(before.values())[-1]
    assert verify(five, is_all=True) == []


@pytest.mark.parametrize("torn", ["", "[", '{"tables/jobs/data/x.parquet": "now"}'])
def test_files_are_deleted_despite_damaged_deletion_list(five: Store, tmp_path: Path, torn: str) -> None:
    expiring.maintain(five, 2)
    shutil.copytree(five.root, tmp_path / "other", symlinks=True)
    other = Store(tmp_path / "other")
    other.files.put("leaving.json", torn.encode())
    assert expiring.remove(other) == (0, 0), "who reads just now has a day from when it is known again"
    assert expiring.remove(five, grace_s=0) == expiring.remove(other, grace_s=0)
    assert files_in(other) == files_in(five)
    assert verify(other, is_all=True) == []


@pytest.mark.long
@pytest.mark.long
def test_publishing_works_after_expiry(five: Store) -> None:
    expiring.maintain(five, 1, grace_s=0)
    expiring.remove(five, grace_s=0)
    sixth = publish(five, "n6", {"jobs": {9: ""}})
    assert sixth.sequence == 6
    assert jobs(five, sixth) == ["100", "80", "81", "run"]
    assert read(five, sixth, "applications")["application_id"].to_list() == ["a/5"]
    again = holds.roll_back(five, releases.history(five)[4].release_id)[0]
    assert "5" in jobs(five, again)
    assert expiring.maintain(five, 1).release_ids == tuple(ids(five)[4:6])
    assert verify(five, is_all=True) == []


@pytest.mark.long
def test_nightly_expiry_waits_for_ten_percent_more_releases(five: Store) -> None:
    assert expiring.maintain(five, 5, is_nightly=True).release_ids == ()
    assert len(expiring.maintain(five, 4, is_nightly=True).release_ids) == 1
    assert len(releases.list_readable(five)) == 4


def test_pinned_release_is_kept_until_unpinned(five: Store) -> None:
    first, second = ids(five)[:2]
    today = datetime.now(UTC).date()
    expiring.pin(five, first)
    expiring.pin(five, second, until=today)
    assert expiring.expire(five, 2) == [releases.history(five)[2]]
    expiring.remove(five, grace_s=0)
    assert jobs(five, releases.find(five, first)) == ["80", "81", "90", "run"]
    expiring.pin(five, second, until=today - timedelta(days=1))
    expiring.unpin(five, first)
    with pytest.raises(UsageError, match="not pinned"):
        expiring.unpin(five, first)
    assert [release.release_id for release in expiring.expire(five, 2)] == [first, second]
    assert expiring.expire(five, 2) == []


@pytest.mark.parametrize("text", one_in(4, [b"[1]", b"", b"{torn", b'{"2026": 7}'], slow=4))
def test_unreadable_pins_prevent_expiry(five: Store, text: bytes) -> None:
    before = releases.history(five)
    five.files.put("pins.json", text)
    with pytest.raises(MachineFault, match="damaged"):
        expiring.expire(five, 1)
    assert releases.history(five) == before


@pytest.mark.long
def test_files_are_deleted_after_readers_finish_and_a_day_passes(five: Store) -> None:
    first = releases.history(five)[0]
    with open_release(five, first) as connection:
        expiring.expire(five, 1)
        assert expiring.remove(five, grace_s=0) == (0, 0)
        assert len(connection.sql("select job_id from jobs").fetchall()) == 4
    assert expiring.remove(five) == (0, 0)
    assert expiring.remove(five, grace_s=0)[0] > 0


@pytest.mark.long
def test_number_of_files_stays_bounded(two: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expiring, "_MAX_ROW_FILES", 4)
    counts = []
    for number in range(14):
        publish(two, f"m{number}", {"applications": {None: f"application_id \n a/{number}"}})
        expiring.maintain(two, 3, grace_s=0)
        counts.append(len([name for name in files_in(two) if not name.endswith(".metadata.json")]))
    assert counts[-4:] == counts[-8:-4], counts
    assert max(len(list(folder.glob("*.metadata.json"))) for folder in two.tables.glob("*/metadata")) <= 21
    assert [release.sequence for release in releases.history(two)] == list(range(1, 17))
    (index,) = (two.root / "release_index").iterdir()
    index.unlink()
    assert len(ids(two)) == 16, "from the rows"
    assert verify(two, is_all=True) == []


@pytest.mark.long
def test_table_that_changes_every_night_has_few_manifests(two: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshots, "_MAX_MANIFESTS", 4)
    days = range(11, 21)
    for number in days:
        publish(two, f"d{number}", {"jobs": {number: f"job_id \n {number}", 9: f"job_id \n again{number}"}})
    table = StaticTable.from_metadata(str(two.tables / "jobs"))
    snapshot = table.current_snapshot()
    assert snapshot is not None
    assert len(snapshot.manifests(table.io)) <= 6
    expected = ["100", "80", "81", "again20", "run", *map(str, days)]
    assert sorted(table.scan().to_arrow()["job_id"].to_pylist()) == sorted(expected)
    for release in releases.history(two)[:3]:
        found = table.scan().use_ref(release.release_id).to_arrow()["job_id"].to_pylist()
        assert sorted(found) == jobs(two, release)


def forget(store: Store, target: Release, number: int, told: dict[str, list[object]]) -> None:
    """Supersede a release by a release with another day, and update the expected jobs."""
    successor = supersede(store, target, f"f{number}", {"jobs": {9: f"job_id \n f{number}"}})
    left = jobs(store, successor)
    assert {name for name in told.pop(target.release_id) if len(str(name)) > 2} <= {*left}
    assert f"f{number}" in left
    assert releases.find(store, target.release_id) == successor
    told[successor.release_id] = left


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("publish"), st.sampled_from(["jobs", "applications", "both"])),
        st.tuples(st.just("expire"), st.integers(1, 3)),
        st.tuples(st.just("remove"), st.just(0)),
        st.tuples(st.just("pin"), st.integers(0, 4)),
        st.tuples(st.just("rollback"), st.integers(0, 4)),
        st.tuples(st.just("forget"), st.integers(0, 4)),
    ),
    min_size=4,
    max_size=9,
)


@pytest.mark.long
@settings(max_examples=examples(25), deadline=None, suppress_health_check=list(HealthCheck))
@given(steps=STEPS)
def test_files_of_kept_releases_are_never_deleted(
    steps: list[tuple[str, object]],
    published: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = Store(tmp_path_factory.mktemp("steps") / "w")
    monkeypatch.setattr(snapshots, "_MAX_MANIFESTS", 3)
    monkeypatch.setattr(expiring, "_MAX_ROW_FILES", 3)
    shutil.copytree(published, store.root, symlinks=True)
    told = {release.release_id: jobs(store, release) for release in releases.history(store)}
    for number, (step, how) in enumerate(steps):
        kept = releases.list_readable(store)
        if step == "publish":
            content = {"jobs": {9: f"job_id \n {number}"}, "applications": {None: f"application_id \n {number}"}}
            chosen = {name: content[name] for name in (content if how == "both" else (str(how),))}
            release = publish(store, f"s{number}", chosen)
            told[release.release_id] = jobs(store, release)
        elif step == "expire":
            expiring.expire(store, int(str(how)))
        elif step == "remove":
            expiring.remove(store, grace_s=0)
        elif step == "pin":
            expiring.pin(store, kept[int(str(how)) % len(kept)].release_id)
        elif step == "forget":
            forget(store, kept[int(str(how)) % len(kept)], number, told)
        elif (target := kept[int(str(how)) % len(kept)]).snapshots != kept[-1].snapshots:
            release = holds.roll_back(store, target.release_id)[0]
            told[release.release_id] = jobs(store, release)
    for release in releases.list_readable(store):
        assert jobs(store, release) == told[release.release_id]
        for path in (path for paths in releases.files_of(store, release).values() for path in paths):
            pl.scan_parquet(path).select(pl.len()).collect()
    assert verify(store, is_all=True) == []
