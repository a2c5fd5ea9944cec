"""Test retention: raw polls of days published long ago are deleted unless a run may need them."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from iosig.warehouse.errors import MachineFault
from iosig.warehouse.releases import expiring, releases, retention
from iosig.warehouse.releases.verifying import verify
from iosig.warehouse.store import landing, ledger
from iosig.warehouse.store.files import FileChecksum
from iosig.warehouse.store.form import mark_form
from iosig.warehouse.store.manifests import MANIFEST_NAME
from iosig.warehouse.store.store import Store, write_json
from tests.budget import examples
from tests.warehouse.releasing import publish

pytestmark = pytest.mark.slow

FIRST = date(2018, 2, 1)
KEEP_DAYS = 10

#: per landing: its days of polls, its age in days, whether it has another table or refused rows, and the index of the
#: first release that contains it (3: none)
LANDINGS = st.lists(
    st.tuples(
        st.sets(st.integers(0, 4), min_size=1, max_size=2),
        st.sampled_from([1, 9, 11, 40]),
        st.sampled_from(["", "", "", "jobs", "refused"]),
        st.integers(0, 3),
    ),
    min_size=1,
    max_size=8,
)


def empty(root: Path) -> Store:
    """Return a warehouse of the current format without landings."""
    root.mkdir(exist_ok=True)
    mark_form(Store(root))
    return Store(root)


def leave(store: Store, number: int, days: set[int], age_days: int, beside: str = "") -> str:
    """Create a landing of polls of some days with the given age and return its id."""
    name = f"{number:016x}"
    folder = store.landed / name
    folder.mkdir(parents=True)
    parts = []
    tables = [("polls", (FIRST + timedelta(days=day)).isoformat()) for day in sorted(days)]
    tables += [("job_records", None)] if beside == "jobs" else [("rejects", None)] if beside == "refused" else []
    for table, day in tables:
        path = folder / f"{table}-{day}.parquet"
        path.write_bytes(b"polls")
        sealed = FileChecksum.from_path(path)
        part = {"table": table, "path": f"landed/{name}/{path.name}", "day": day, "row_count": 5, "is_shared": False}
        part |= {"byte_count": sealed.byte_count, "sha256": sealed.sha256, "first": None, "last": None}
        parts.append(part | {"longest_interval_s": 2.0})
    at = (datetime.now(UTC) - timedelta(days=age_days)).isoformat(timespec="microseconds")
    told = {"landing_id": name, "sequence": number, "generation": 0, "source_file": "a.csv", "format": "csv"}
    told |= {"content_sha256": name * 4, "landed_at": at, "refused_count": 5 * (beside == "refused"), "parts": parts}
    write_json(told, folder / MANIFEST_NAME)
    return name


def there(store: Store) -> set[str]:
    """Return the ids of all landings."""
    return {lot.landing_id for lot in landing.ledger(store)}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return empty(tmp_path / "warehouse")


def test_old_released_polls_are_deleted_and_their_day_closed(store: Store) -> None:
    old, young = leave(store, 1, {0}, 11), leave(store, 2, {1}, 9)
    publish(store, "first", {}, inputs=(old, young))
    cleared = retention.clear(store, KEEP_DAYS)
    assert (cleared.landing_count, cleared.byte_count, cleared.days) == (1, 5, (FIRST,))
    assert there(store) == {young}
    assert retention.read_closed_days(store) == {FIRST}
    assert verify(store) == [], "what went is not missed"
    assert retention.clear(store, KEEP_DAYS).landing_count == 0
    assert retention.clear(store, 8).days == (FIRST + timedelta(days=1),)
    assert retention.read_closed_days(store) == {FIRST, FIRST + timedelta(days=1)}


def test_day_is_deleted_completely_or_not_at_all(store: Store) -> None:
    both, one = leave(store, 1, {0, 1}, 40), leave(store, 2, {1}, 1)
    alone = leave(store, 3, {2}, 40)
    publish(store, "first", {}, inputs=(both, one, alone))
    assert retention.clear(store, KEEP_DAYS).landing_count == 1
    assert there(store) == {both, one}, "a day has young polls, and with it the old ones of the day before stay"


@pytest.mark.parametrize("beside", ["jobs", "refused"])
def test_landing_with_other_tables_or_rejects_is_kept(store: Store, beside: str) -> None:
    publish(store, "first", {}, inputs=(leave(store, 1, {0}, 40, beside), leave(store, 2, {0}, 40)))
    assert retention.clear(store, KEEP_DAYS).landing_count == 0


@pytest.mark.long
def test_landing_missing_in_a_kept_release_is_kept(store: Store) -> None:
    first, second = leave(store, 1, {0}, 40), leave(store, 2, {1}, 40)
    publish(store, "first", {}, inputs=(first,))
    publish(store, "second", {}, inputs=(second,))
    assert retention.clear(store, KEEP_DAYS).days == (FIRST,)
    assert there(store) == {second}
    expiring.expire(store, 1)
    assert retention.clear(store, KEEP_DAYS).days == (FIRST + timedelta(days=1),)
    assert there(store) == set()


def test_nothing_is_deleted_before_first_release(store: Store) -> None:
    leave(store, 1, {0}, 40)
    assert retention.clear(store, KEEP_DAYS).landing_count == 0


def test_nothing_is_deleted_while_a_reader_is_active(store: Store) -> None:
    publish(store, "first", {}, inputs=(leave(store, 1, {0}, 40),))
    with releases.being_read(store):
        assert retention.clear(store, KEEP_DAYS).landing_count == 0
    assert retention.clear(store, KEEP_DAYS).landing_count == 1


def test_interrupted_deletion_is_completed_by_next_call(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    publish(store, "first", {}, inputs=(leave(store, 1, {0}, 40), leave(store, 2, {1}, 40)))

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(retention.seals, "unseal", killed)
        with pytest.raises(KeyboardInterrupt):
            retention.clear(store, KEEP_DAYS)
    assert retention.read_closed_days(store) == {FIRST, FIRST + timedelta(days=1)}, (
        "they are closed before anything goes"
    )
    assert retention.clear(store, KEEP_DAYS).landing_count == 2
    assert there(store) == set()


def test_damaged_list_of_closed_days_raises_machine_fault(store: Store) -> None:
    (store.root / "closed_days.json").write_text("[")
    with pytest.raises(MachineFault, match="damaged"):
        retention.read_closed_days(store)


@pytest.mark.long
@settings(max_examples=examples(30), deadline=None)
@given(found=LANDINGS, keep_count=st.integers(1, 3))
def test_deletion_never_removes_files_needed_by_a_release_or_run(
    tmp_path_factory: pytest.TempPathFactory, found: list[tuple[set[int], int, str, int]], keep_count: int
) -> None:
    store = empty(tmp_path_factory.mktemp("warehouse"))
    names = [leave(store, number, *told[:3]) for number, told in enumerate(found, 1)]
    for place in range(3):
        brought = tuple(name for name, told in zip(names, found, strict=True) if told[3] == place)
        publish(store, f"n{place}", {}, inputs=brought)
    expiring.expire(store, keep_count)
    kept = releases.list_readable(store)
    in_all = set.intersection(*(set(releases.landings_in(store, release)) for release in kept))
    files = {release.release_id: releases.files_of(store, release) for release in kept}
    cleared = retention.clear(store, KEEP_DAYS)
    left, closed = there(store), retention.read_closed_days(store)
    gone = [(name, told) for name, told in zip(names, found, strict=True) if name not in left]
    assert cleared.landing_count == len(gone)
    assert all(name in in_all and told[1] > KEEP_DAYS and told[2] == "" for name, told in gone)
    assert closed == {FIRST + timedelta(days=day) for _, told in gone for day in told[0]}
    for name, told in zip(names, found, strict=True):
        assert name not in left or closed.isdisjoint(FIRST + timedelta(days=day) for day in told[0])
    assert {release.release_id: releases.files_of(store, release) for release in releases.list_readable(store)} == files
    assert all(path.is_file() for tables in files.values() for paths in tables.values() for path in paths)
    assert verify(store) == []
    assert ledger.is_true(store)
