"""Test rollbacks: each stays in force until the operator ends it."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest

from iosig.warehouse.errors import NothingToDo, UsageError
from iosig.warehouse.releases import holds, publishing, releases
from iosig.warehouse.store.store import Store
from tests.warehouse.releasing import publish


@pytest.fixture(scope="module")
def rolled_back(published: Path, tmp_path_factory: pytest.TempPathFactory) -> Store:
    """A warehouse with two releases, rolled back to the first, which tests only read."""
    root = tmp_path_factory.mktemp("rolled-back") / "two"
    shutil.copytree(published, root, symlinks=True)
    store = Store(root)
    holds.roll_back(store, releases.history(store)[0].release_id)
    return store


def test_landings_of_later_releases_are_excluded_by_default(rolled_back: Store) -> None:
    first, second, release = releases.history(rolled_back)
    hold = holds.in_force(rolled_back)
    assert hold is not None
    assert (release.kind, release.parent_release_id) == ("rollback", first.release_id)
    assert release.snapshots == first.snapshots
    excluded = {*releases.landings_in(rolled_back, second)} - {*releases.landings_in(rolled_back, first)}
    assert {*hold.landing_ids} == excluded
    assert hold.parameters == first.parameters
    assert "`iosig rollback --end`" in hold.sentence


def test_rollback_to_later_release_includes_its_landings(two: Store) -> None:
    first, second = releases.history(two)
    holds.roll_back(two, first.release_id)
    _, hold = holds.roll_back(two, second.release_id)
    assert hold.landing_ids == ()


def test_second_rollback_keeps_exclusions_of_first(two: Store) -> None:
    first = releases.history(two)[0]
    _, before = holds.roll_back(two, first.release_id)
    third = publish(two, "third", {"jobs": {8: ""}}, inputs=("l9",))
    assert third.parent_release_id is not None
    _, hold = holds.roll_back(two, first.release_id)
    assert {*hold.landing_ids} == {*before.landing_ids, "l9"}
    assert hold.since == before.since


def test_repeated_rollback_only_changes_exclusions(two: Store) -> None:
    first = releases.history(two)[0]
    holds.roll_back(two, first.release_id)
    count = len(releases.history(two))
    with pytest.raises(NothingToDo, match="already the current release"):
        holds.roll_back(two, first.release_id)
    _, hold = holds.roll_back(two, first.release_id, table_names=["jobs"])
    assert (hold.landing_ids, hold.table_names, hold.parameters) == ((), ("jobs",), None)
    assert len(releases.history(two)) == count


@pytest.mark.parametrize(
    ("excluded", "problem"),
    [({"landing_ids": ["nothing"]}, "Unknown landing nothing"), ({"table_names": ["job"]}, "Did you mean jobs")],
)
def test_unknown_exclusions_are_refused_before_any_change(
    two: Store, excluded: dict[str, list[str]], problem: str
) -> None:
    first, second = releases.history(two)
    with pytest.raises(UsageError, match=problem):
        holds.roll_back(two, first.release_id, **excluded)
    assert holds.read(two) is None
    assert releases.current(two) == second


def test_ended_rollback_of_tables_is_kept_until_next_run(two: Store) -> None:
    first = releases.history(two)[0]
    with pytest.raises(NothingToDo, match="No rollback"):
        holds.end(two)
    holds.roll_back(two, first.release_id)
    holds.end(two)
    assert holds.read(two) is None
    holds.roll_back(two, first.release_id, table_names=["jobs"])
    holds.end(two)
    ended = holds.read(two)
    assert holds.in_force(two) is None
    assert ended is not None
    assert ended.ended_at is not None
    holds.settle(two)
    assert holds.read(two) is None


def test_failed_rollback_is_not_in_force(two: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = releases.history(two)

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(publishing, "rollback", fail)
    with pytest.raises(OSError, match="No space"):
        holds.roll_back(two, first.release_id)
    assert holds.read(two) is None
    assert releases.current(two) == second


def test_killed_rollback_is_in_force_and_can_be_completed(two: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    first = releases.history(two)[0]

    def kill(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(publishing, "rollback", kill)
        with pytest.raises(KeyboardInterrupt):
            holds.roll_back(two, first.release_id)
    assert holds.in_force(two) is not None
    release, hold = holds.roll_back(two, first.release_id)
    assert release.snapshots == first.snapshots
    assert holds.in_force(two) == hold


def test_release_ids_have_publication_time_and_increase(two: Store) -> None:
    first, second = releases.history(two)
    before = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    ids = [holds.roll_back(two, name)[0].release_id for name in (first.release_id, second.release_id)]
    assert ids == sorted(set(ids))
    assert all(name.endswith("Z-rollback") and name > before for name in ids)


def test_day_selects_newest_release_of_it_not_rolled_back(two: Store, rolled_back: Store) -> None:
    first, second, latest = releases.history(rolled_back)
    assert releases.find(two, "2018-02-09") == releases.history(two)[1]
    assert releases.find(rolled_back, "2018-02-09") == first
    assert releases.find(rolled_back, second.release_id) == second, "an id is exact"
    assert releases.find(rolled_back, latest.release_id[:8]) == latest, "a prefix is enough"
    with pytest.raises(UsageError, match="is not a release"):
        releases.find(rolled_back, "2018-03-01")


def test_newest_data_day_is_inherited(rolled_back: Store) -> None:
    assert [release.newest_data_on for release in releases.history(rolled_back)] == ["2018-02-09"] * 3
