"""The night as a whole: its tables, repeated runs, late inputs, quarantine and the quality gate."""

from __future__ import annotations

import shutil
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import iosig.expectations.gate
import iosig.warehouse.store.store
from iosig.flows.steps.plan import make_plan
from iosig.settings.model import Settings
from iosig.warehouse.contracts.job_io import JOB_IO
from iosig.warehouse.errors import GateFailed, NothingToDo, UsageError
from iosig.warehouse.releases import releases, retention
from iosig.warehouse.releases.reading import count_differences, open_release
from iosig.warehouse.releases.verifying import verify
from iosig.warehouse.store.store import Store
from tests.nights import Night, land_files, pass_every_check, query_release, read_tables, run_night

DAYS = (date(2026, 3, 2), date(2026, 3, 3))


# ---- published tables


def test_night_publishes_every_table(checked_night: Night) -> None:
    site, release = checked_night.store, checked_night.release
    assert release.verdict == "passed", "both days are partial: the data begin and end within them"
    assert release.dates == tuple(day.isoformat() for day in DAYS)
    with open_release(site, release) as connection:
        io = connection.sql("from job_io order by job_id, direction").pl()
        samples = connection.sql("from samples").pl()
        applications = connection.sql("from applications order by application_id").pl()
        failed = connection.sql("select table_name, expectation from quality where not success and severity <> 'info'")
        assert failed.fetchall() == []
        days = connection.sql("select missing_ratio, is_partial_day from polls_daily").fetchall()
        assert days == [(0.0, True), (0.0, True)]
    assert io["outcome"].unique().to_list() == ["not_attributed"]
    assert io["estimated_bytes"].null_count() == 8, "two runs make no signature, and the traffic is nobody's estimate"
    reads = io.filter(pl.col("direction") == "read")
    # 30 minutes from a step's edge: the right edges from started_at on, and one beyond the end
    assert reads["filesystem_bytes"].to_list() == [3e6 * 10 * 181] * 4
    assert reads["missing_ratio"].to_list() == [0.0] * 4
    assert samples["step_count"].to_list() == [181] * 8
    assert applications["application_id"].to_list() == ["ann/ior/8", "ann/s3d/8"]
    assert applications["sample_count"].to_list() == [2, 2]


def test_file_system_traffic_alone_does_not_classify_a_run(checked_night: Night) -> None:
    for table in ("classes", "periods"):
        answers = f"select distinct subject_kind, basis, outcome from {table}"
        rows = query_release(checked_night.store, checked_night.release, answers).rows()
        assert rows == [("job", "inferred", "no_signature")], table


# ---- later runs


def _land_polls(store: Store, folder: Path, *rows: str) -> None:
    path = folder / "late.csv"
    path.write_text("\n".join(["polled_at,controller,interval_s,read_bytes_per_s,write_bytes_per_s", *rows]) + "\n")
    assert [arrival.has_refusals for arrival in land_files(store, path)] == [False]


@pytest.fixture(scope="module")
def first_day(landed_site: Store, tmp_path_factory: pytest.TempPathFactory) -> Night:
    """The small site after a night of its first day alone; must not be changed."""
    store = Store(tmp_path_factory.mktemp("first-day") / "warehouse")
    shutil.copytree(landed_site.root, store.root)
    with pytest.MonkeyPatch.context() as monkeypatch:
        pass_every_check(monkeypatch)
        return Night(store, run_night(store, until=DAYS[0]))


@pytest.mark.usefixtures("quick_checks")
class TestRepeatedRuns:
    @pytest.mark.slow
    def test_second_run_has_nothing_to_do(self, quick_night: Night, tmp_path: Path) -> None:
        site = quick_night.copy(tmp_path / "warehouse")
        with pytest.raises(NothingToDo, match=quick_night.release.release_id):
            run_night(site)
        assert releases.history(site) == [quick_night.release]

    @pytest.mark.long
    def test_changed_settings_rebuild_every_day(self, quick_night: Night, tmp_path: Path) -> None:
        site, first = quick_night.copy(tmp_path / "warehouse"), quick_night.release
        settings = Settings.model_validate({"classes": {"min_duration_s": 7200}})
        second = run_night(site, settings)
        assert second.dates == first.dates
        assert query_release(site, second, "select distinct outcome from classes").rows() == [("too_short",)]
        changed = {name: changed for name, _, _, _, changed in count_differences(site, first, second)}
        assert changed["classes"] == 8
        assert changed["job_io"] == 0

    @pytest.mark.long
    def test_day_range_leaves_other_days_for_the_next_run(self, first_day: Night, tmp_path: Path) -> None:
        first = first_day.release
        assert first.dates == (DAYS[0].isoformat(),)
        assert first.input_count == 0, "both files hold the second day too"
        second = run_night(first_day.copy(tmp_path / "warehouse"))
        assert second.dates == tuple(day.isoformat() for day in DAYS)
        assert second.input_count == 2

    @pytest.mark.long
    def test_day_by_day_runs_equal_one_run_of_both_days(
        self, quick_night: Night, first_day: Night, tmp_path: Path
    ) -> None:
        other = first_day.copy(tmp_path / "other")
        assert read_tables(other, run_night(other, since=DAYS[1])) == read_tables(quick_night.store)

    def test_first_run_on_a_converted_release_computes_every_day(
        self, quick_night: Night, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        store = quick_night.store
        with pytest.raises(NothingToDo):
            make_plan(store, Settings())
        monkeypatch.setattr(releases, "is_converted", lambda *_: True)
        assert make_plan(store, Settings()).job_days == DAYS
        with pytest.raises(UsageError, match="Run once without --since and --until"):
            make_plan(store, Settings(), since=DAYS[1])

    @pytest.mark.slow
    def test_late_polls_rebuild_only_affected_days(self, quick_night: Night, tmp_path: Path) -> None:
        site, first = quick_night.copy(tmp_path / "warehouse"), quick_night.release
        _land_polls(site, tmp_path, "2026-03-03T00:10:00Z,c9,10,5000000,0")
        second = run_night(site)
        assert second.dates == (DAYS[1].isoformat(),)
        assert second.parent_release_id == first.release_id
        query = "select filesystem_bytes from job_io where direction = 'read' order by job_id"
        volumes = query_release(site, second, query)["filesystem_bytes"]
        assert volumes.to_list() == [5430e6, 5430e6, 5480e6, 5430e6]

    @pytest.mark.slow
    def test_day_with_removed_polls_is_not_recomputed(self, quick_night: Night, tmp_path: Path) -> None:
        site, first = quick_night.copy(tmp_path / "warehouse"), quick_night.release
        cleared = retention.clear(site, -1)
        assert (cleared.landing_count, cleared.days) == (1, DAYS)
        _land_polls(site, tmp_path, "2026-03-03T00:20:00Z,c7,10,1e6,0")
        told: list[str] = []
        settings = Settings.model_validate({"classes": {"min_duration_s": 7200}, "storage": {"keep_landed_days": 1}})
        second = run_night(site, settings, lambda name, *_: told.append(name))
        assert [name for name in told if DAYS[1].isoformat() in name and "too late" in name] != []
        counts = {name: sum(changes) for name, _, *changes in count_differences(site, first, second)}
        assert {name: counts.get(name, 0) for name in ("classes", "job_io", "filesystem_rates", "polls_daily")} == {
            "classes": 8, "job_io": 0, "filesystem_rates": 0, "polls_daily": 0,
        }  # fmt: skip
        assert verify(site) == []

    def test_concurrent_run_is_refused(self, site: Store) -> None:
        with iosig.warehouse.store.store.lock_warehouse(site), pytest.raises(UsageError, match="Another run"):
            run_night(site)

    def test_empty_warehouse_is_refused_with_a_hint_to_land(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="iosig land"):
            run_night(Store(tmp_path / "empty"))


@pytest.mark.parametrize(("kind", "rows"), [("polls.csv", {"polls_daily": 2}), ("jobs.sacct", {"jobs": 4})])
@pytest.mark.usefixtures("quick_checks")
@pytest.mark.long
def test_each_kind_of_input_is_optional(kind: str, rows: dict[str, int], landed_site: Store, tmp_path: Path) -> None:
    store = Store(tmp_path / "warehouse")
    land_files(store, landed_site.root.parent / "site" / kind)
    found = read_tables(store, run_night(store))
    assert {name: len(found[name]) for name in rows} == rows
    assert found["samples"] == []


# ---- first polls of a file system


def _land_second_filesystem(store: Store, folder: Path, *hours: int) -> None:
    """Land polls of the file system `new`, ten seconds apart, in hours after the midnight between both days."""
    midnight = datetime(2026, 3, 3, tzinfo=UTC)
    times = [midnight + timedelta(hours=hour, seconds=second) for hour in hours for second in range(0, 3600, 10)]
    path = folder / f"new{hours[0]}.csv"
    rows = [f"{at:%FT%TZ},c9,new,1,1" for at in times]
    path.write_text("\n".join(["polled_at,controller,filesystem,read_bytes_per_s,write_bytes_per_s", *rows]) + "\n")
    land_files(store, path)


@pytest.mark.slow
@pytest.mark.usefixtures("quick_checks")
def test_file_system_added_later_has_no_gap_before_its_first_poll(site: Store, tmp_path: Path) -> None:
    _land_second_filesystem(site, tmp_path, 1)
    assert "new" in make_plan(site, Settings()).beginnings[DAYS[1]]
    days = "select polled_on, missing_ratio, is_partial_day from polls_daily where filesystem = 'new' order by all"
    assert query_release(site, run_night(site), days).rows() == [(DAYS[1], 0.0, True)]
    # polls of the evening before arrive: the former first day has a gap of an hour
    _land_second_filesystem(site, tmp_path, -1)
    (_, *first), (_, missing_ratio, is_partial) = query_release(site, run_night(site), days).rows()
    assert first == [0.0, True]
    assert (missing_ratio, is_partial) == (pytest.approx(0.5, abs=0.01), True)


@pytest.mark.slow
def test_changed_settings_for_some_days_raise_a_warning(quick_night: Night) -> None:
    """The release records the settings of the run, so no later run would recompute the other days."""
    store, other = quick_night.store, Settings.model_validate({"classes": {"min_duration_s": 1}})
    (warning,) = make_plan(store, other, since=DAYS[1]).warnings
    assert quick_night.release.release_id in warning
    assert f"`iosig run --since {DAYS[0]}`" in warning
    assert make_plan(store, other).warnings == ()
    assert make_plan(store, Settings(), since=DAYS[1]).warnings == ()


# ---- quality gate


@pytest.mark.slow
@pytest.mark.usefixtures("checks_here")
def test_rows_that_break_a_rule_are_quarantined(site: Store, tmp_path: Path) -> None:
    log = tmp_path / "wrong.sacct"
    log.write_text(
        "JobID|User|JobName|NNodes|Start|End|State\n900|ann|ior|8|2026-03-03T01:00:00Z|2026-03-03T00:00:00Z|COMPLETED\n"
    )
    land_files(site, log)
    with open_release(site, run_night(site)) as connection:
        assert connection.sql("select count(*) from jobs where job_id = '900'").fetchall() == [(0,)]
        taken = connection.sql("select table_name, rule, row_json from quarantine").fetchall()
    assert [row[:2] for row in taken] == [("jobs", "ends_after_start")]
    assert '"900"' in taken[0][2]


@pytest.mark.usefixtures("quick_checks")
@pytest.mark.long
def test_implausible_and_contradictory_polls_are_quarantined(site: Store, tmp_path: Path) -> None:
    _land_polls(site, tmp_path, "2026-03-03T00:10:00Z,c0,10,7,7", "2026-03-03T00:10:00Z,c8,10,5e12,0")
    settings = Settings.model_validate({"polls": {"max_controller_bytes_per_s": 1e10}})
    with open_release(site, run_night(site, settings)) as connection:
        rules = connection.sql("select rule from quarantine order by rule").fetchall()
        volume = connection.sql("select max(filesystem_bytes) from job_io where direction = 'read'").fetchall()
    assert rules == [("polls_agree",), ("rate_within_limit",)]
    assert volume == [(5430e6,)]


@pytest.mark.slow
@pytest.mark.usefixtures("checks_here")
def test_critical_failure_blocks_the_release(site: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    check = iosig.expectations.gate.check

    def broken(table: Any, frame: pl.DataFrame, parameters: Any) -> iosig.expectations.gate.CheckResult:
        return check(table, pl.concat([frame, frame]) if table == JOB_IO else frame, parameters)

    with monkeypatch.context() as patch:
        patch.setattr(iosig.expectations.gate, "check", broken)
        with pytest.raises(GateFailed, match="job_io"):
            run_night(site)
    assert releases.history(site) == []
    assert [path.name for path in site.data_docs.iterdir()] == ["refused"]
    release = run_night(site)
    assert releases.history(site) == [release]
