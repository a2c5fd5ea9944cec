"""Test releases: a run is published atomically, and every earlier release stays readable."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from pyiceberg.catalog.sql import SqlCatalog

from iosig.warehouse.contracts.jobs import JOBS
from iosig.warehouse.contracts.samples import APPLICATIONS
from iosig.warehouse.errors import ContractError, NothingToDo, UsageError
from iosig.warehouse.releases import holds, locations, publishing, releases
from iosig.warehouse.store.store import Store
from tests.budget import one_in
from tests.sql.given import DAY
from tests.warehouse.releasing import built, draft, keys, on, publish, read

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "ware house ü")


# ---- publishing


@pytest.mark.parametrize(
    ("broken", "rule"),
    one_in(
        3,
        [
            (pl.lit(-1.0).alias("duration_s"), "duration_s_at_least_0 in 1 rows"),
            (pl.lit(math.nan).alias("duration_s"), "duration_s_finite in 1 rows"),
            (pl.lit(None, pl.String).alias("job_id"), "job_id_not_null in 1 rows"),
            (pl.lit("ASLEEP").alias("state"), "state_known in 1 rows"),
            (pl.lit(1, pl.Int32).alias("node_count"), "node_count is INTEGER, not BIGINT"),
            (pl.lit(1).alias("more"), r"unknown \['more'\]"),
        ],
    ),
)
def test_file_that_violates_contract_is_not_published(two: Store, tmp_path: Path, broken: pl.Expr, rule: str) -> None:
    """Publishing validates files from any writer, because `write_parquet` is bypassed here."""
    (made,) = built(tmp_path, JOBS, {9: "job_id \n 92"}).values()
    good = read(two, releases.find(two, None), "jobs")
    rows = pl.read_parquet(made).with_columns(broken)
    made.unlink()
    rows.write_parquet(made)
    with pytest.raises(ContractError, match=f"jobs: .*{rule}"):
        publishing.publish(two, draft("third", on=releases.current(two)), {"jobs": {on(9): made}})
    assert len(releases.history(two)) == 2
    assert read(two, releases.find(two, None), "jobs").equals(good)
    publish(two, "fourth", {"jobs": {9: "job_id \n 92"}})
    assert "92" in keys(two, releases.find(two, None), "jobs", "job_id")


def test_release_has_properties_of_its_run(two: Store) -> None:
    first, second = releases.history(two)
    assert releases.current(two) == second
    assert (first.release_id, first.kind, first.verdict) == ("2018-02-09-first", "run", "passed")
    assert (first.parent_release_id, second.parent_release_id) == (None, first.release_id)
    assert first.dates == (DAY.isoformat(), None)
    assert [release["inputs"] for release in releases.to_records(two, [first, second])] == [["l1", "l2"], ["l3"]]
    assert (first.input_count, second.input_count) == (2, 1)
    assert json.loads(first.parameters) == {"a": 1}
    assert first.created_at < second.created_at


def test_new_warehouse_has_no_release(store: Store) -> None:
    assert releases.history(store) == []
    assert releases.current(store) is None
    assert set(releases.landings_in(store, None)) == set()
    with pytest.raises(UsageError, match="No release exists"):
        releases.find(store, None)
    assert not store.root.exists(), "asking makes nothing"


def test_named_days_are_replaced_and_others_are_kept(two: Store) -> None:
    first, second = releases.history(two)
    assert keys(two, second, "jobs", "job_id") == ["100", "80", "81", "91", "run"]
    assert keys(two, first, "jobs", "job_id") == ["80", "81", "90", "run"], "the first stays as it was"
    before, after = (set(releases.files_of(two, release)["jobs"]) for release in (first, second))
    assert {locations.parse_day(path) for path in before & after} == {on(8), None}, "untouched days keep their files"
    assert read(two, second, "jobs").schema == read(two, first, "jobs").schema


def test_tables_not_built_keep_their_snapshot(two: Store) -> None:
    first, second = releases.history(two)
    changed = {name for name, snapshot in second.snapshots.items() if first.snapshots.get(name) != snapshot}
    assert changed == {"jobs"}
    assert keys(two, second, "applications", "application_id") == ["a/x/1", "b/y/2"]


@pytest.mark.slow
def test_undated_rows_are_replaced_separately_and_days_can_vanish(two: Store) -> None:
    third = publish(two, "third", {"jobs": {None: "job_id ended_at \n other ."}})
    assert keys(two, third, "jobs", "job_id") == ["100", "80", "81", "91", "other"]
    files = releases.files_of(two, third)["jobs"]
    assert sorted(str(locations.parse_day(path)) for path in files) == [
        "2018-02-08",
        "2018-02-09",
        "2018-02-10",
        "None",
    ]
    fourth = publish(two, "fourth", {"jobs": {8: "", None: ""}, "polls_daily": {8: "", 9: ""}})
    assert keys(two, fourth, "jobs", "job_id") == ["100", "91"]
    assert releases.files_of(two, fourth)["polls_daily"] == []
    content: dict[str, Any] = {"jobs": {None: "job_id ended_at \n again ."}, "polls_daily": {9: "filesystem \n sea"}}
    fifth = publish(two, "fifth", content)
    assert keys(two, fifth, "jobs", "job_id") == ["100", "91", "again"]
    assert keys(two, fifth, "polls_daily", "filesystem") == ["sea"]


@pytest.mark.slow
def test_tables_without_days_are_replaced_completely(two: Store) -> None:
    assert read(two, releases.find(two, None), "rejects").is_empty()
    content: dict[str, Any] = {"applications": {None: "application_id \n c/z/3"}, "rejects": {None: "line \n 1"}}
    third = publish(two, "third", content)
    assert keys(two, third, "applications", "application_id") == ["c/z/3"]
    assert read(two, third, "rejects").height == 1
    fourth = publish(two, "fourth", {"applications": {None: ""}})
    assert read(two, fourth, "applications").is_empty()


# ---- early adoption


def test_files_adopted_early_appear_only_with_the_release(two: Store, tmp_path: Path) -> None:
    plan = draft("third", on=releases.current(two))
    early = {"jobs": built(tmp_path, JOBS, {9: "job_id \n 92"})}
    adopted = publishing.adopt_early(two, plan.fingerprint, early)
    assert len(list(two.tables.rglob("*-third0123.parquet"))) == 1
    assert "92" not in keys(two, releases.find(two, None), "jobs", "job_id"), "nobody published it yet"
    (other,) = built(tmp_path, JOBS, {9: "job_id \n 93"}).values()
    other.replace(early["jobs"][on(9)])
    late = {"applications": built(tmp_path, APPLICATIONS, {None: "application_id \n d/w/4"})}
    third = publishing.publish(two, plan, early | late, adopted)
    assert "92" in keys(two, third, "jobs", "job_id"), "what was adopted is not looked at again"
    assert keys(two, third, "applications", "application_id") == ["d/w/4"]


@pytest.mark.parametrize("is_forgotten", [False, True])
def test_files_adopted_for_an_abandoned_release_are_removed(two: Store, tmp_path: Path, is_forgotten: bool) -> None:
    plan = draft("lost", on=releases.current(two))
    publishing.adopt_early(two, plan.fingerprint, {"jobs": built(tmp_path, JOBS, {9: "job_id \n 92"})})
    if is_forgotten:
        publishing.abandon(two)
    else:
        publish(two, "fourth", {"jobs": {9: "job_id \n 93"}})
    assert not list(two.tables.rglob("*-lost0123.parquet"))
    assert keys(two, releases.find(two, None), "jobs", "job_id") == [
        "100",
        "80",
        "81",
        "91" if is_forgotten else "93",
        "run",
    ]
    publishing.abandon(two)
    assert releases.current(two) == releases.history(two)[-1], "and what was published stays"


@pytest.mark.slow
def test_readers_see_previous_release_until_commit(two: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    second = releases.find(two, None)
    seen = []
    append = publishing.append_row

    def looked_at(catalogue: SqlCatalog, store: Store, release: releases.Release, *inputs: tuple[str, ...]) -> None:
        append(catalogue, store, release, *inputs)
        seen.append((releases.find(store, None), keys(store, second, "jobs", "job_id")))

    monkeypatch.setattr(publishing, "append_row", looked_at)
    third = publish(two, "third", {"jobs": {9: "job_id \n new"}})
    assert seen == [(second, ["100", "80", "81", "91", "run"])], "all is written, and nothing seen"
    assert releases.find(two, None) == third
    assert keys(two, third, "jobs", "job_id") == ["100", "80", "81", "new", "run"]


# ---- history


def test_release_is_found_by_prefix_of_its_id(two: Store) -> None:
    first, second = releases.history(two)
    assert releases.find(two, None) == second
    assert releases.find(two, "2018-02-09-f") == first
    assert releases.find(two, second.release_id) == second
    for name, problem in (
        ("2018", "is ambiguous: .*first, .*second"),
        ("2019", "is not a release"),
        ("", "is ambiguous"),
    ):
        with pytest.raises(UsageError, match=problem):
            releases.find(two, name)


@pytest.mark.slow
def test_rollback_makes_earlier_release_current_and_keeps_later(two: Store) -> None:
    first, second = releases.history(two)
    again = holds.roll_back(two, first.release_id)[0]
    assert releases.find(two, None) == again
    assert releases.find(two, first.release_id) == first, "though another id begins with it"
    assert (again.kind, again.parent_release_id, again.snapshots) == ("rollback", first.release_id, first.snapshots)
    assert keys(two, again, "jobs", "job_id") == ["80", "81", "90", "run"]
    assert keys(two, second, "jobs", "job_id") == ["100", "80", "81", "91", "run"]
    with pytest.raises(NothingToDo):
        holds.roll_back(two, first.release_id)
    with pytest.raises(UsageError, match="is not a release"):
        holds.roll_back(two, "nothing")
    forward = holds.roll_back(two, second.release_id)[0]
    assert keys(two, forward, "jobs", "job_id") == keys(two, second, "jobs", "job_id")
    assert len({release.release_id for release in releases.history(two)}) == 4


@pytest.mark.slow
def test_release_after_rollback_is_based_on_its_target(two: Store) -> None:
    first, second = releases.history(two)
    again = holds.roll_back(two, first.release_id)[0]
    third = publish(two, "third", {"jobs": {8: ""}}, inputs=("l4",))
    assert third.parent_release_id == again.release_id
    assert keys(two, third, "jobs", "job_id") == ["90", "run"]
    assert set(releases.landings_in(two, third)) == {"l1", "l2", "l4"}
    assert keys(two, second, "jobs", "job_id") == ["100", "80", "81", "91", "run"]


@pytest.mark.slow
@pytest.mark.long
def test_table_younger_than_rollback_target_starts_empty(two: Store) -> None:
    first = releases.history(two)[0]
    publish(two, "third", {"series_intervals": {8: "subject_id \n old"}})
    holds.roll_back(two, first.release_id)
    fourth = publish(two, "fourth", {"series_intervals": {9: "subject_id \n new"}})
    assert keys(two, fourth, "series_intervals", "subject_id") == ["new"]


@pytest.mark.slow
@pytest.mark.long
def test_table_missing_in_older_version_is_empty_until_computed(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        known = [each for each in releases.list_published_tables() if each.name != "period_segments"]
        patch.setattr(publishing, "list_published_tables", lambda: known)
        old = {"periods": {8: "subject_id outcome \n old no_io"}}
        first = publish(store, "first", {each.name: {} for each in known} | old)
    assert "period_segments" not in first.snapshots
    assert publishing.current(store) == first
    days = {"periods": {9: "subject_id outcome \n new no_io"}, "period_segments": {9: "subject_id segment \n new 1"}}
    second = publish(store, "second", days)
    assert keys(store, first, "period_segments", "subject_id") == []
    assert keys(store, second, "periods", "subject_id") == ["new", "old"]
    assert keys(store, second, "period_segments", "subject_id") == ["new"]
    third = publish(store, "third", {"period_segments": {8: "subject_id segment \n old 1"}})
    assert keys(store, third, "period_segments", "subject_id") == ["new", "old"]


@pytest.mark.slow
def test_landings_of_a_release_follow_its_ancestors(two: Store) -> None:
    first, second = releases.history(two)
    assert set(releases.landings_in(two, first)) == {"l1", "l2"}
    assert set(releases.landings_in(two, second)) == {"l1", "l2", "l3"}
    replaced = publishing.Draft(
        "f3", (), inputs=("l2-1",), removed_inputs=("l2",), parameters="{}", code_version="0",
        verdict="passed with warnings", base_release_id=second.release_id,
    )  # fmt: skip
    third = publishing.publish(two, replaced, {})
    assert set(releases.landings_in(two, third)) == {"l1", "l2-1", "l3"}
    assert set(releases.landings_in(two, holds.roll_back(two, first.release_id)[0])) == {"l1", "l2"}


@pytest.mark.slow
@pytest.mark.parametrize("year", [2017, 2036], ids=["set-back", "ahead"])
def test_releases_are_ordered_by_sequence_not_by_clock(two: Store, year: int, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(publishing, "now_text", lambda: f"{year}-01-01T00:00:00+00:00")
        third = publish(two, "third", {"jobs": {9: "job_id \n 92"}})
    fourth = publish(two, "fourth", {"jobs": {9: "job_id \n 93"}})
    assert [release.sequence for release in releases.history(two)] == [1, 2, 3, 4]
    assert releases.history(two)[2:] == [third, fourth]
    assert fourth.parent_release_id == third.release_id
    assert releases.find(two, None) == fourth
    assert keys(two, fourth, "jobs", "job_id") == ["100", "80", "81", "93", "run"]
    shutil.rmtree(two.root / "release_index")
    assert releases.history(two)[2:] == [third, fourth], "from the table itself"


# ---- indexes, moves and copies


def test_lost_indexes_are_rebuilt(two: Store) -> None:
    history = releases.history(two)
    files = [releases.files_of(two, release) for release in history]
    for name in ("release_index", "snapshot_files"):
        shutil.rmtree(two.root / name)
    assert releases.history(two) == history
    assert [releases.files_of(two, release) for release in history] == files
    assert (two.root / "release_index").is_dir()
    assert (two.root / "snapshot_files").is_dir()


READ_ELSEWHERE = """
import json, sys
from pathlib import Path
from iosig.warehouse.releases import reading, releases
from iosig.warehouse.store.store import Store

store = Store(Path(sys.argv[1]))
found = []
for release in releases.history(store):
    with reading.open_release(store, release) as connection:
        found.append([row[0] for row in connection.sql("select job_id from jobs order by job_id").fetchall()])
print(json.dumps([found, "pyiceberg" in sys.modules]))
"""


def read_elsewhere(root: Path) -> list[Any]:
    """Read the jobs of every release in a new process that runs in another folder."""
    code = [sys.executable, "-c", READ_ELSEWHERE, str(root)]
    done = subprocess.run(code, cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
    found: list[Any] = json.loads(done.stdout)
    return found


def test_moved_warehouse_is_readable_without_iceberg_library(two: Store, tmp_path: Path) -> None:
    jobs = [["80", "81", "90", "run"], ["100", "80", "81", "91", "run"]]
    elsewhere = tmp_path / "deep ü" / "moved here"
    elsewhere.parent.mkdir()
    two.root.rename(elsewhere)
    assert read_elsewhere(elsewhere) == [jobs, False]
    for name in ("release_index", "snapshot_files"):
        shutil.rmtree(elsewhere / name)
    moved = Store(elsewhere)
    assert [keys(moved, release, "jobs", "job_id") for release in releases.history(moved)] == jobs


@pytest.mark.slow
def test_copied_warehouse_is_independent(two: Store, tmp_path: Path) -> None:
    copy = Store(tmp_path / "copy")
    shutil.copytree(two.root, copy.root, symlinks=True)
    before = {path: path.stat().st_mtime_ns for path in two.root.rglob("*") if path.is_file()}
    third = publish(copy, "third", {"jobs": {9: ""}})
    assert keys(copy, third, "jobs", "job_id") == ["100", "80", "81", "run"]
    assert {path: path.stat().st_mtime_ns for path in two.root.rglob("*") if path.is_file()} == before
    fourth = publish(two, "fourth", {"jobs": {8: ""}})
    assert keys(two, fourth, "jobs", "job_id") == ["100", "91", "run"]
