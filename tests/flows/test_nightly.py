"""The night as a whole: what it makes, that it can be repeated, and that it survives being killed anywhere."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import iosig.expectations.docs
import iosig.expectations.gate
import iosig.warehouse.placing
import iosig.warehouse.releases.catalogue
import iosig.warehouse.releases.publishing
import iosig.warehouse.store.store
from iosig.flows import nightly
from iosig.flows.steps.plan import make_plan
from iosig.settings.model import Settings
from iosig.streams.landing import Told, land_paths
from iosig.warehouse.contracts.job_io import JOB_IO
from iosig.warehouse.errors import GateFailed, NothingToDo, UsageError
from iosig.warehouse.releases import clearing, older, publishing, releases
from iosig.warehouse.releases.reading import count_differences, opened
from iosig.warehouse.releases.releases import Release, published
from iosig.warehouse.releases.verifying import verify
from iosig.warehouse.store.store import Store
from tests.budget import one_in
from tests.nights import Night, pass_every_check

DAYS = (date(2026, 3, 2), date(2026, 3, 3))


def run(store: Store, settings: Settings | None = None, **days: date) -> Release:
    settings = settings or Settings()
    return nightly.run_inline(store, settings, lambda *_: None, **days)


def contents(store: Store, release: Release) -> dict[str, Any]:
    """Every row of every table of a release, in an order of its own."""
    found = {}
    with opened(store, release) as connection:
        for table in published():
            found[table.name] = sorted(map(str, connection.sql(f'select t from "{table.name}" as t').fetchall()))
    return found


def described(release: Release) -> Release:
    """Remove from a release what differs between two equal runs: the time of publication and snapshot ids."""
    return replace(release, release_id="", created_at="", snapshots=dict.fromkeys(release.snapshots, 0))


# ---- what it makes


def test_a_night_makes_every_table(checked_night: Night) -> None:
    site, release = checked_night.store, checked_night.release
    assert release.verdict == "passed", "both days are partial: the data begin and end within them"
    assert release.dates == tuple(day.isoformat() for day in DAYS)
    with opened(site, release) as connection:
        io = connection.sql("from job_io order by job_id, direction").pl()
        samples = connection.sql("from samples").pl()
        applications = connection.sql("from applications order by application_id").pl()
        failed = connection.sql("select table_name, expectation from quality where not success and severity <> 'info'")
        assert failed.fetchall() == []
        days = connection.sql("select missing_ratio, is_partial_day from poll_days").fetchall()
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


def test_traffic_of_the_file_system_gives_no_class_to_a_run(checked_night: Night) -> None:
    with opened(checked_night.store, checked_night.release) as connection:
        answers = [
            connection.sql(f"select distinct subject_kind, basis, outcome from {table}").fetchall()
            for table in ("classes", "periods")
        ]
    assert answers == [[("job", "inferred", "no_signature")]] * 2


# ---- what comes after it


@dataclass(frozen=True)
class QuickNight(Night):
    """A night without checks; `built` is its warehouse as a kill would have left it just before the publishing."""

    built: Path


@pytest.fixture(scope="module")
def both_days(landed_site: Store, tmp_path_factory: pytest.TempPathFactory) -> QuickNight:
    """The small site after one undisturbed night of both days; not to be changed."""
    root = tmp_path_factory.mktemp("both-days")
    store = Store(root / "warehouse")
    shutil.copytree(landed_site.root, store.root)
    publish = publishing.publish

    def keep_what_is_built(*arguments: Any) -> Release:
        shutil.copytree(store.root, root / "built")
        return publish(*arguments)

    with pytest.MonkeyPatch.context() as monkeypatch:
        pass_every_check(monkeypatch)
        monkeypatch.setattr(publishing, "publish", keep_what_is_built)
        return QuickNight(store, run(store), root / "built")


@pytest.fixture(scope="module")
def first_day(landed_site: Store, tmp_path_factory: pytest.TempPathFactory) -> Night:
    """The small site after a night of its first day alone; not to be changed."""
    store = Store(tmp_path_factory.mktemp("first-day") / "warehouse")
    shutil.copytree(landed_site.root, store.root)
    with pytest.MonkeyPatch.context() as monkeypatch:
        pass_every_check(monkeypatch)
        return Night(store, run(store, until=DAYS[0]))


@pytest.mark.usefixtures("quick_checks")
class TestRepeated:
    @pytest.mark.slow
    def test_a_second_run_has_nothing_to_do(self, both_days: QuickNight, tmp_path: Path) -> None:
        site = both_days.copy(tmp_path / "warehouse")
        with pytest.raises(NothingToDo, match=both_days.release.release_id):
            run(site)
        assert releases.history(site) == [both_days.release]

    @pytest.mark.long
    @pytest.mark.long
    def test_other_settings_make_every_day_anew(self, both_days: QuickNight, tmp_path: Path) -> None:
        site, first = both_days.copy(tmp_path / "warehouse"), both_days.release
        settings = Settings.model_validate({"classes": {"min_duration_s": 7200}})
        second = run(site, settings)
        assert second.dates == first.dates
        with opened(site, second) as connection:
            assert connection.sql("select distinct outcome from classes").fetchall() == [("too_short",)]
        changed = {name: changed for name, _, _, _, changed in count_differences(site, first, second)}
        assert changed["classes"] == 8
        assert changed["job_io"] == 0

    @pytest.mark.slow
    @pytest.mark.long
    def test_a_range_leaves_the_rest_for_the_next_run(self, first_day: Night, tmp_path: Path) -> None:
        first = first_day.release
        assert first.dates == (DAYS[0].isoformat(),)
        assert first.input_count == 0, "both files hold the second day too"
        second = run(first_day.copy(tmp_path / "warehouse"))
        assert second.dates == tuple(day.isoformat() for day in DAYS)
        assert second.input_count == 2

    @pytest.mark.slow
    @pytest.mark.long
    def test_one_day_at_a_time_gives_what_both_days_give(
        self, both_days: QuickNight, first_day: Night, tmp_path: Path
    ) -> None:
        other = first_day.copy(tmp_path / "other")
        both, apart = contents(both_days.store, both_days.release), contents(other, run(other, since=DAYS[1]))
        assert both == apart

    def test_the_first_run_on_an_older_release_computes_every_day(
        self, both_days: QuickNight, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        store = both_days.store
        with pytest.raises(NothingToDo):
            make_plan(store, Settings())
        monkeypatch.setattr(older, "is_older", lambda *_: True)
        assert make_plan(store, Settings()).job_days == DAYS
        with pytest.raises(UsageError, match="Run once without --since and --until"):
            make_plan(store, Settings(), since=DAYS[1])

    @pytest.mark.slow
    def test_late_polls_renew_only_what_they_concern(self, both_days: QuickNight, tmp_path: Path) -> None:
        site, first = both_days.copy(tmp_path / "warehouse"), both_days.release
        late = tmp_path / "late.csv"
        late.write_text(
            "polled_at,controller,interval_s,read_bytes_per_s,write_bytes_per_s\n2026-03-03T00:10:00Z,c9,10,5000000,0\n"
        )
        list(land_paths(site, Settings(), [str(late)], Told()))
        second = run(site)
        assert second.dates == (DAYS[1].isoformat(),)
        assert second.parent_release_id == first.release_id
        with opened(site, second) as connection:
            query = "select filesystem_bytes from job_io where direction = 'read' order by job_id"
            volumes = [volume for (volume,) in connection.sql(query).fetchall()]
        assert volumes == [5430e6, 5430e6, 5480e6, 5430e6]

    @pytest.mark.slow
    def test_a_day_whose_polls_were_cleared_stays_as_it_is(self, both_days: QuickNight, tmp_path: Path) -> None:
        site, first = both_days.copy(tmp_path / "warehouse"), both_days.release
        cleared = clearing.clear(site, -1)
        assert (cleared.landing_count, cleared.days) == (1, DAYS)
        late = tmp_path / "late.csv"
        late.write_text(
            "polled_at,controller,interval_s,read_bytes_per_s,write_bytes_per_s\n2026-03-03T00:20:00Z,c7,10,1e6,0\n"
        )
        assert [arrival.has_refusals for arrival in land_paths(site, Settings(), [str(late)], Told())] == [False]
        told: list[str] = []
        settings = Settings.model_validate({"classes": {"min_duration_s": 7200}, "storage": {"keep_landed_days": 1}})
        second = nightly.run_inline(site, settings, lambda name, *_: told.append(name))
        assert [name for name in told if DAYS[1].isoformat() in name and "too late" in name] != []
        counts = {name: sum(changes) for name, _, *changes in count_differences(site, first, second)}
        assert {name: counts.get(name, 0) for name in ("classes", "job_io", "ticks", "poll_days")} == {
            "classes": 8, "job_io": 0, "ticks": 0, "poll_days": 0,
        }  # fmt: skip
        assert verify(site) == []

    def test_two_runs_at_once_are_refused(self, site: Store) -> None:
        with iosig.warehouse.store.store.locked(site), pytest.raises(UsageError, match="Another run"):
            run(site)

    def test_nothing_landed_is_told(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="iosig land"):
            run(Store(tmp_path / "empty"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "rows"), one_in(2, [("polls.csv", {"poll_days": 2}), ("jobs.sacct", {"jobs": 4})], slow=2)
)
@pytest.mark.usefixtures("quick_checks")
@pytest.mark.long
def test_each_kind_of_input_is_optional(kind: str, rows: dict[str, int], landed_site: Store, tmp_path: Path) -> None:
    store = Store(tmp_path / "warehouse")
    list(land_paths(store, Settings(), [str(landed_site.root.parent / "site" / kind)], Told()))
    found = contents(store, run(store))
    assert {name: len(found[name]) for name in rows} == rows
    assert found["samples"] == []


# ---- the gate


@pytest.mark.slow
@pytest.mark.usefixtures("checks_here")
def test_rows_that_break_a_rule_are_in_quarantine(site: Store, tmp_path: Path) -> None:
    log = tmp_path / "wrong.sacct"
    log.write_text(
        "JobID|User|JobName|NNodes|Start|End|State\n900|ann|ior|8|2026-03-03T01:00:00Z|2026-03-03T00:00:00Z|COMPLETED\n"
    )
    list(land_paths(site, Settings(), [str(log)], Told()))
    with opened(site, run(site)) as connection:
        assert connection.sql("select count(*) from jobs where job_id = '900'").fetchall() == [(0,)]
        taken = connection.sql("select table_name, rule, row_json from quarantine").fetchall()
    assert [row[:2] for row in taken] == [("jobs", "ends_after_start")]
    assert '"900"' in taken[0][2]


@pytest.mark.slow
@pytest.mark.usefixtures("quick_checks")
@pytest.mark.long
def test_implausible_and_contradicting_polls_are_in_quarantine(site: Store, tmp_path: Path) -> None:
    polls = tmp_path / "wrong.csv"
    polls.write_text(
        "polled_at,controller,interval_s,read_bytes_per_s,write_bytes_per_s\n"
        "2026-03-03T00:10:00Z,c0,10,7,7\n"
        "2026-03-03T00:10:00Z,c8,10,5e12,0\n"
    )
    list(land_paths(site, Settings(), [str(polls)], Told()))
    settings = Settings.model_validate({"polls": {"controller_limit_bytes_per_s": 1e10}})
    with opened(site, run(site, settings)) as connection:
        rules = connection.sql("select rule from quarantine order by rule").fetchall()
        volume = connection.sql("select max(filesystem_bytes) from job_io where direction = 'read'").fetchall()
    assert rules == [("polls_agree",), ("rate_within_limit",)]
    assert volume == [(5430e6,)]


@pytest.mark.slow
@pytest.mark.usefixtures("checks_here")
def test_a_critical_failure_stops_the_release(site: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    check = iosig.expectations.gate.check

    def broken(table: Any, frame: pl.DataFrame, parameters: Any) -> iosig.expectations.gate.Checked:
        return check(table, pl.concat([frame, frame]) if table == JOB_IO else frame, parameters)

    with monkeypatch.context() as patch:
        patch.setattr(iosig.expectations.gate, "check", broken)
        with pytest.raises(GateFailed, match="job_io"):
            run(site)
    assert releases.history(site) == []
    assert [path.name for path in site.data_docs.iterdir()] == ["refused"]
    release = run(site)
    assert releases.history(site) == [release]
