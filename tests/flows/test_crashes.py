"""Every operation is resumed after a kill at any moment, and readers see the old release or the new release.

The table below has a row for each operation. A kill is tried before each durable change of the warehouse: a few moments
in each tier, sixteen in the long tier, and 64 with `IOSIG_TEST_EXAMPLES=full`. `tests/warehouse/store/test_journal.py`
tests SQLite's writes, `tests/cli/test_predict_processes.py` tests commands as processes, and the tests of servers and
object stores test their crashes.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from iosig.flows.steps.predictions import land_journal
from iosig.settings.model import PredictionSettings, Settings
from iosig.warehouse.errors import IosigError, NothingToDo
from iosig.warehouse.releases import expiring, holds, links, publishing, releases, retention, seals
from iosig.warehouse.releases.relocating import relocate
from iosig.warehouse.releases.repairing import repair
from iosig.warehouse.releases.upgrading import upgrade
from iosig.warehouse.releases.verifying import verify
from iosig.warehouse.store import landing
from iosig.warehouse.store.files import FileChecksum
from iosig.warehouse.store.journal import Journal, State
from iosig.warehouse.store.positions import position
from iosig.warehouse.store.store import Store, document
from tests import small_traces
from tests.flows import test_forget
from tests.flows.crashes import wrecks_of
from tests.nights import land_files, pass_every_check, run_night, write_small_site
from tests.prediction_rows import prediction
from tests.warehouse.releases.test_retention import empty, leave
from tests.warehouse.releases.test_upgrading import unpack
from tests.warehouse.releasing import FIRST, SECOND, publish
from tests.warehouse.store.test_positions import batch

Change = Callable[[Store], object]

#: maximum number of moments of an operation in the long tier
MAX_COUNT = 64 if os.environ.get("IOSIG_TEST_EXAMPLES") == "full" else 16


@dataclass(frozen=True)
class Operation:
    """A row of the table.

    prepare: builds the warehouse. read: the readers' view, which equals the view before or after at each moment.
    resume: what runs after the crash, by default the operation itself. is_gradual: several values are read, and each
    equals its value before or after. is_quick: a few moments run in the first tier. is_long: all run in the last tier.
    """

    name: str
    prepare: Change
    do: Change
    read: Callable[[Store], Any]
    resume: Change | None = None
    is_quick: bool = False
    is_gradual: bool = False
    is_long: bool = False

    def is_whole(self, seen: Any, before: Any, after: Any) -> bool:
        """Return whether readers see the old state, or all of the new state."""
        return seen in (before, after) or (self.is_gradual and all(each in (*before, *after) for each in seen))


# ---- readers' views


def landed(store: Store) -> Any:
    """The landings that count, with the checksums of their files."""
    return [(each.landing_id, [(part.path, part.sha256) for part in each.parts]) for each in landing.ledger(store)]


def released(store: Store) -> Any:
    """Checksums of each table's files, for each release that is kept."""
    found = []
    for release in releases.list_readable(store):
        files = releases.files_of(store, release)
        digests = {name: sorted(FileChecksum.from_path(path).sha256 for path in paths) for name, paths in files.items()}
        found.append((release.sequence, release.kind, release.dates, {k: v for k, v in digests.items() if v}))
    return found


def both(store: Store) -> Any:
    return landed(store), released(store)


def predicted(store: Store) -> Any:
    """The evaluations that have landed."""
    paths = [store.root / part.path for each in landing.ledger(store) for part in each.parts]
    return sorted(number for path in paths for number in pl.read_parquet(path)["evaluation"])


def without_user(store: Store) -> Any:
    """All rows of each release, without columns about landings."""
    return [(release.sequence, release.kind, test_forget.rows(store, release)) for release in releases.history(store)]


def _read(operation: Operation, store: Store) -> Any:
    try:
        return operation.read(store)
    except IosigError as error:
        # an older format, or damaged metadata
        return type(error)


# ---- warehouses


def _nothing(store: Store) -> None:
    write_small_site(store.root.parent / "site")


def _landed_site(store: Store) -> None:
    _nothing(store)
    _land_site(store)


def _run_site(store: Store) -> None:
    _landed_site(store)
    run_night(store)
    jobs = store.root.parent / "site" / "jobs.sacct"
    header, *rows = jobs.read_text().splitlines()
    late = jobs.with_name("late.sacct")
    late.write_text(f"{header}\n{rows[-1].replace('103|', '104|')}\n")
    land_files(store, late)


def _two(store: Store) -> None:
    publish(store, "first", FIRST, inputs=("l1", "l2"))
    publish(store, "second", SECOND, inputs=("l3",))


def _four(store: Store) -> None:
    _two(store)
    for number in (3, 4):
        publish(
            store, f"n{number}", {"jobs": {9: f"job_id \n {number}"}, "applications": {None: "application_id \n a"}}
        )


def _moved(store: Store) -> None:
    elsewhere = Store(store.root.with_name("elsewhere"))
    _two(elsewhere)
    elsewhere.root.rename(store.root)


def _damaged(store: Store) -> None:
    _two(store)
    hint = store.tables / "jobs" / "metadata" / "version-hint.text"
    hint.with_name(f"{hint.read_text()}.metadata.json").write_text("{")


def _old_polls(store: Store) -> None:
    empty(store.root)
    publish(store, "first", {}, inputs=(leave(store, 1, {0}, 40), leave(store, 2, {1}, 40)))


def _followed(store: Store) -> None:
    _commit(store, 1)
    list(land_journal(store, _KEEP_NONE))
    _commit(store, 2)


def _land_more_predictions(store: Store) -> None:
    _commit(store, 3)
    list(land_journal(store, _KEEP_NONE))


def _nights_of_users(store: Store) -> None:
    test_forget.work(store, test_forget.write_nights(store.root.parent / "nights", with_user=True))


def _commit(store: Store, evaluation: int) -> None:
    with Journal(store.journal) as journal:
        journal.follow("/a")
        journal.commit([prediction(evaluation, "/a")], [State("/a", {"evaluation": evaluation})])


# ---- operations

_KEEP_NONE = Settings(predictions=PredictionSettings(keep_days=0))
_LOST = {"jobs": {8: "job_id \n lost", 11: "job_id \n lost-too"}, "applications": {None: "application_id \n lost"}}


def _land_site(store: Store) -> None:
    land_files(store, store.root.parent / "site")


def _land_traces(store: Store) -> None:
    small_traces.land(store, small_traces.write(store.root.parent / "traces", 12))


def _land_from_position(store: Store) -> None:
    for number in (1, 2):
        begun = position(store, "a")
        if begun.cursor is None or begun.cursor["to"] < number:
            begun.land(f"read to {number}", "csv", batch(number), {"to": number}, None)


def _run_anew(store: Store) -> None:
    run_night(store, Settings.model_validate({"classes": {"min_duration_s": 1}}))


def _forget(store: Store) -> None:
    with suppress(NothingToDo):
        test_forget.forget_data(store, user=test_forget.USER)


def _publish_third(store: Store) -> None:
    publish(store, "third", _LOST)


def _publish_other(store: Store) -> None:
    # as a night begins
    publishing.complete(store)
    publish(store, "fourth", {"jobs": {10: "job_id \n 101"}, "applications": {None: "application_id \n d/w/4"}})


def _roll_back_once_more(store: Store) -> None:
    with suppress(NothingToDo):
        holds.roll_back(store, "2018-02-09-second")
    # the next run removes the files of an unpublished release
    publishing.abandon(store)


def _roll_back(store: Store) -> None:
    holds.roll_back(store, "2018-02-09-first")


def _expire(store: Store) -> None:
    expiring.expire(store, 2)
    expiring.remove(store, grace_s=0)


OPERATIONS = [
    Operation("land files", _nothing, _land_site, landed, is_quick=True, is_gradual=True),
    Operation("land small traces", _nothing, _land_traces, landed),
    Operation("land from a position", _nothing, _land_from_position, landed, is_quick=True, is_gradual=True),
    Operation(
        "land the journal",
        _followed,
        lambda store: list(land_journal(store, _KEEP_NONE)),
        predicted,
        resume=_land_more_predictions,
    ),
    Operation("first run", _landed_site, run_night, both),
    Operation("first run, then with other settings", _landed_site, run_night, both, resume=_run_anew, is_long=True),
    Operation("second run", _run_site, run_night, both, is_long=True),
    Operation("publish", _two, _publish_third, released, is_quick=True),
    Operation("publish, then something else", _two, _publish_third, released, resume=_publish_other),
    Operation("first release, then another", _nothing, _publish_third, released, resume=_publish_other),
    Operation("publish, then roll back", _two, _publish_third, released, resume=_roll_back_once_more),
    Operation("roll back", _two, _roll_back, released),
    Operation("expire", _four, _expire, lambda store: (released(store)[-2:], len(releases.history(store)))),
    Operation("clear old polls", _old_polls, lambda store: retention.clear(store, 10), released),
    Operation("relocate", _moved, relocate, released),
    Operation("repair", _damaged, repair, released),
    Operation("upgrade", unpack, upgrade, released),
    Operation("forget", _nights_of_users, _forget, without_user, is_gradual=True, is_long=True),
]

_TIERS = {"few": 1, "some": 4, "many": MAX_COUNT}
CASES = [
    pytest.param(
        operation,
        _TIERS[tier],
        is_power_cut,
        marks=[*[pytest.mark.slow] * (tier != "few"), *[pytest.mark.long] * (tier == "many" or operation.is_long)],
        id=f"{operation.name}, {tier} moments, {'power cut' if is_power_cut else 'killed'}",
    )
    for operation in OPERATIONS
    for tier in ("few", "some", "many")
    for is_power_cut in (False, True)
    if tier == "many" or not is_power_cut
    if tier != "few" or operation.is_quick
]


@pytest.fixture(scope="module", autouse=True)
def quick_checks_here() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as monkeypatch:
        pass_every_check(monkeypatch)
        yield


def _resumed(operation: Operation, store: Store) -> Any:
    with suppress(NothingToDo):
        (operation.resume or operation.do)(store)
    publishing.complete(store)
    return _read(operation, store)


@pytest.mark.parametrize(("operation", "max_count", "is_power_cut"), CASES)
def test_killed_operation_is_resumed(operation: Operation, max_count: int, is_power_cut: bool, tmp_path: Path) -> None:
    store = Store(tmp_path / "warehouse")
    operation.prepare(store)
    before = _read(operation, store)
    expected = {str(before): None if operation.resume is None else _undisturbed(operation, store, tmp_path)}
    wrecks = wrecks_of(
        store.root, tmp_path / "wrecks", lambda: operation.do(store), max_count, is_power_cut=is_power_cut
    )
    assert wrecks
    after = _read(operation, store)
    expected[str(after)] = _resumed(operation, store)
    # a repair that goes back leaves the files of later releases
    left_over = _left_over(store)
    for wreck in wrecks:
        shutil.rmtree(store.root)
        wreck.rename(store.root)
        _check(operation, store, before, after, expected)
        assert _left_over(store) <= left_over


def _check(operation: Operation, store: Store, before: Any, after: Any, expected: dict[str, Any]) -> None:
    seen = _read(operation, store)
    assert operation.is_whole(seen, before, after)
    if operation.name not in ("repair", "upgrade"):
        assert {damage.path for damage in verify(store)} <= _unfinished(store)
    resumed = _resumed(operation, store)
    assert verify(store, is_all=True) == []
    assert resumed == (after if operation.resume is None else expected[str(seen)])


def _undisturbed(operation: Operation, store: Store, folder: Path) -> Any:
    """Return the result of resuming when the operation never began."""
    other = Store(folder / "undisturbed" / store.root.name)
    shutil.copytree(store.root, other.root, symlinks=True) if store.root.exists() else None
    return _resumed(operation, other)


def _left_over(store: Store) -> set[str]:
    """Files that a crash leaves for good: partial landings, and data files that no release has and no run removes."""
    landing.sweep(store)
    files = [releases.files_of(store, release) for release in releases.list_readable(store)]
    names = {path for tables in files for paths in tables.values() for path in paths}
    kept = {path.relative_to(store.root).as_posix() for path in names} | (document(store, "leaving.json") or {}).keys()
    left = {name for name in store.files.matching("tables/*/data/*.parquet") if name not in kept}
    half = {path.name for path in store.landed.glob(".*.tmp")}
    return {name for name in left if not name.startswith("tables/releases/")} | half


def _unfinished(store: Store) -> set[str]:
    """Files that the next run or forget leaves if a release was published right before the crash."""
    current = releases.current(store)
    successors = [release for release in releases.list_readable(store) if release.kind == "forget"]
    return {links.LATEST, *map(seals.make_seal_name, [current, *successors])} if current else set()
