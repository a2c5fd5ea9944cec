"""Checks of a release cover all of its days, whichever run built them."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from datetime import UTC, date, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import iosig.expectations.gate
from iosig.expectations import daily_summary
from iosig.flows.steps import checks, plan as planning
from iosig.flows.steps.items import StepContext, TableFile, WorkItem
from iosig.settings.model import Settings
from iosig.warehouse.contracts import Table, frames
from iosig.warehouse.contracts.job_io import JOB_IO
from iosig.warehouse.contracts.quality import QUALITY, QUALITY_DAILY
from iosig.warehouse.errors import ContractError, GateFailed
from iosig.warehouse.releases import releases
from iosig.warehouse.releases.releases import Release
from iosig.warehouse.store.store import Store, write_json, write_parquet
from tests.nights import FoundByChecks, Night, check_here, land_files, query_release, run_night

HEADER = "JobID|User|JobName|NNodes|Start|End|State"
#: a run that ends before it starts, on a day without other runs, and a malformed line
WRONG = f"{HEADER}\n900|ann|ior|8|2026-03-01T01:00:00Z|2026-03-01T00:00:00Z|COMPLETED\nnonsense|x\n"
LATER = f"{HEADER}\n901|bob|ior|8|2026-03-05T01:00:00Z|2026-03-05T02:00:00Z|COMPLETED\n"
#: the same run as corrected by the site's accounting
MENDED = f"{HEADER}\n900|ann|ior|8|2026-03-01T01:00:00Z|2026-03-01T02:00:00Z|COMPLETED\n"


def land(store: Store, folder: Path, text: str) -> None:
    path = folder / f"{hash(text)}.sacct"
    path.write_text(text)
    land_files(store, path)


def rows(store: Store, release: Release, query: str) -> list[Any]:
    return query_release(store, release, query).rows()


FAILED = "select expectation, unexpected_count from quality where not success and severity = 'warning' order by all"


@dataclass(frozen=True)
class Two:
    """A warehouse with two releases; the second adds one run. Must not be changed."""

    store: Store
    first: Release
    second: Release
    pages: str


@pytest.fixture(scope="module")
def two(landed_site: Store, found_by_checks: FoundByChecks, tmp_path_factory: pytest.TempPathFactory) -> Two:
    folder = tmp_path_factory.mktemp("two")
    store = Store(folder / "warehouse")
    shutil.copytree(landed_site.root, store.root)
    land(store, folder, WRONG)
    with pytest.MonkeyPatch.context() as monkeypatch:
        check_here(monkeypatch, found_by_checks)
        first = run_night(store)
        land(store, folder, LATER)
        second = run_night(store)
    return Two(store, first, second, (store.data_docs / "index.html").read_text())


@pytest.mark.usefixtures("checks_here")
@pytest.mark.long
class TestTwoReleases:
    def test_unresolved_failure_stays_in_the_smaller_release(self, two: Two) -> None:
        assert two.second.dates == ("2026-03-05",)
        # the first and the last day of coverage are partial: no poll of their time is missing
        standing = [("ends_after_start", 1)]
        assert rows(two.store, two.first, FAILED) == rows(two.store, two.second, FAILED) == standing
        assert (two.first.verdict, two.second.verdict) == ("passed with warnings", "passed with warnings")

    def test_counts_cover_all_days_of_the_release(self, two: Two) -> None:
        for name in ("jobs", "polls_daily", "filesystem_rates"):
            query = f"select observed::json->>'observed_value' from quality where table_name = '{name}'"
            ((told,),) = rows(two.store, two.second, f"{query} and expectation = 'has_rows'")
            ((count,),) = rows(two.store, two.second, f"select count(*) from {name}")
            assert int(told) == count > 0
        ((refused,),) = rows(two.store, two.second, "select count(*) from rejects")
        assert refused == 1
        assert rows(two.store, two.second, "select day, rule from quarantine") == [
            (date(2026, 3, 1), "ends_after_start")
        ]

    def test_results_of_unchanged_days_are_carried_over(self, two: Two) -> None:
        query = "from quality_daily where day <> date '2026-03-05' order by all"
        assert rows(two.store, two.first, query) == rows(two.store, two.second, query) != []

    def test_pages_cover_both_releases(self, two: Two) -> None:
        for told in (
            f"Release {two.second.release_id}",
            "1 of 6 runs ends before it starts, and was quarantined.",
            "1 input was refused.",
            two.first.release_id,
        ):
            assert told in two.pages
        assert "no jobs" not in two.pages

    def test_rebuilt_day_clears_its_failure(self, two: Two, tmp_path: Path) -> None:
        store = Night(two.store, two.second).copy(tmp_path / "warehouse")
        land(store, tmp_path, MENDED)
        third = run_night(store)
        assert third.dates == ("2026-03-01",)
        assert rows(store, third, FAILED) == []
        assert rows(store, third, "from quarantine") == []
        assert "taken out" not in (store.data_docs / "index.html").read_text()

    def test_incremental_checks_equal_checks_of_all_days_in_one_run(self, two: Two, tmp_path: Path) -> None:
        store = Store(tmp_path / "warehouse")
        shutil.copytree(two.store.root / "landed", store.root / "landed")
        shutil.copy(two.store.root / "form.json", store.root)
        whole = run_night(store)
        for query in ("from quality order by all", "from quality_daily order by all"):
            assert rows(store, whole, query) == rows(two.store, two.second, query)

    def test_refused_run_keeps_pages_of_the_current_release(
        self, two: Two, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        store = Night(two.store, two.second).copy(tmp_path / "warehouse")
        land(store, tmp_path, MENDED)
        check = iosig.expectations.gate.check

        def broken(table: Table, frame: pl.DataFrame, parameters: Any) -> iosig.expectations.gate.CheckResult:
            return check(table, pl.concat([frame, frame]) if table == JOB_IO else frame, parameters)

        refused = store.data_docs / "refused" / "index.html"
        with monkeypatch.context() as patch:
            patch.setattr(iosig.expectations.gate, "check", broken)
            with pytest.raises(GateFailed, match=str(refused)):
                run_night(store)
        assert (store.data_docs / "index.html").read_text() == two.pages
        assert "No release was published" in refused.read_text()
        assert f"{two.second.release_id}</a> is unchanged" in refused.read_text()
        third = run_night(store)
        assert f"Release {third.release_id}" in (store.data_docs / "index.html").read_text()
        assert not refused.exists()


def test_values_missing_from_an_older_release_count_as_observed() -> None:
    """Older releases recorded only that all values were present."""
    older = (
        None,
        "job_io_sources",
        "some_runs_measured",
        "info",
        True,
        '{"observed_value": null, "of_days": []}',
        0,
        0,
    )
    quality = daily_summary.aggregate_days(pl.DataFrame([older], schema=frames.schema(QUALITY_DAILY), orient="row"), {})
    (told,) = quality.filter(expectation="some_runs_measured").iter_rows(named=True)
    assert (told["success"], json.loads(told["observed"])) == (True, {"observed_value": ["measured"]})


# ---- rows carried over


DAYS = [date(2026, 3, 1), date(2026, 3, 2), None]
Row = tuple[date | None, str, str, bool, str, int, int]


def found(day: date | None, table: str, count: int, observed: str = "{}") -> Row:
    return day, table, "key_unique", count == 0, observed, count, 10


def frame_of(*found: Row) -> pl.DataFrame:
    told = [(day, table, name, "warning", *rest) for day, table, name, *rest in found]
    return pl.DataFrame(told, schema=frames.schema(QUALITY_DAILY), orient="row")


def given(
    root: Path, fresh: dict[str, tuple[list[date | None], list[Row]]], before: pl.DataFrame, of: Table
) -> StepContext:
    """Return the context of `decide`: results and days of each table's check, and the previous release."""
    reads = [TableFile(of.name, str(write_parquet(before, of, root / "before.parquet")), is_released=True)]
    for name, (days, told) in fresh.items():
        path = write_parquet(frame_of(*told), QUALITY_DAILY, root / "verdicts" / name / "undated.parquet")
        write_json([day and day.isoformat() for day in days], path.with_suffix(".json"))
        reads.append(TableFile(QUALITY_DAILY.name, str(path)))
    return StepContext(root, WorkItem("checks", "checks", "", tuple(reads), (), tuple(DAYS), Settings(), "built", ""))


@pytest.mark.parametrize(
    ("anew", "kept"),
    [
        ({}, {("jobs", day): 1 for day in DAYS} | {("filesystem_rates", DAYS[0]): 1}),
        ({"jobs": [DAYS[0]]}, {("jobs", DAYS[1]): 1, ("jobs", None): 1, ("filesystem_rates", DAYS[0]): 1}),
        (
            {"jobs": [DAYS[0], None], "filesystem_rates": [DAYS[1]]},
            {("jobs", DAYS[1]): 1, ("filesystem_rates", DAYS[0]): 1},
        ),
    ],
)
def test_results_of_rebuilt_days_replace_earlier_ones(
    anew: dict[str, list[date | None]], kept: dict[tuple[str, date | None], int], tmp_path: Path
) -> None:
    before = frame_of(*(found(day, "jobs", 1) for day in DAYS), found(DAYS[0], "filesystem_rates", 1))
    fresh = {name: (days, [found(day, name, 0) for day in days]) for name, days in anew.items()}
    by_day = checks._by_day(given(tmp_path, fresh, before, QUALITY_DAILY))
    told = {(name, day): count for day, name, count in by_day.select("day", "table_name", "unexpected_count").rows()}
    assert told == kept | {(name, day): 0 for name, days in anew.items() for day in days}


def test_day_without_rows_has_no_results(tmp_path: Path) -> None:
    before = frame_of(found(DAYS[0], "jobs", 1))
    assert checks._by_day(given(tmp_path, {"jobs": ([DAYS[0]], [])}, before, QUALITY_DAILY)).is_empty()


@pytest.mark.parametrize(
    ("anew", "left"),
    [
        ([], ["2026-03-01", "2026-03-02"]),
        ([DAYS[0]], ["2026-03-02"]),
        ([DAYS[0], DAYS[1]], None),
        ([None], None),
    ],
)
def test_older_release_counts_for_its_days_until_all_are_rebuilt(
    anew: list[date | None], left: list[str] | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table without days is rebuilt in every run, so none of its results are carried over."""
    days = ("2026-03-01", "2026-03-02")
    base = Release("r", 1, "", "run", None, "0.1", days, days[-1], 0, 0, "{}", {}, "passed with warnings")
    places = {
        "jobs": [Path(f"2026-03-0{day}-f.parquet") for day in (1, 2, 4)],
        "applications": [Path("undated-f.parquet")],
    }
    monkeypatch.setattr(releases, "current", lambda _: base)
    monkeypatch.setattr(releases, "files_of", lambda *_: places)
    told = [
        ("jobs", 3, '{"row_count": 7}'),
        ("applications", 2, '{"row_count": 2}'),
        ("filesystem_rates", 0, '{"row_count": 0}'),
    ]
    before = pl.DataFrame(
        [(name, "key_unique", "warning", count == 0, text, count) for name, count, text in told],
        schema=frames.schema(QUALITY),
        orient="row",
    )
    fresh: dict[str, tuple[list[date | None], list[Row]]] = {"jobs": (anew, []), "applications": ([None], [])}
    by_day = checks._by_day(given(tmp_path, fresh, before, QUALITY))
    assert [json.loads(text)["of_days"] for text in by_day["observed"]] == ([] if left is None else [left])
    if left is not None:
        assert by_day.select("day", "table_name", "unexpected_count", "row_count").rows() == [(None, "jobs", 3, 7)]


@pytest.mark.parametrize("batch_rows", [1, 2, 3, 100])
def test_batch_holds_whole_files_or_the_tail_of_a_long_file(
    batch_rows: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checks, "_BATCH_ROWS", batch_rows)
    monkeypatch.setattr(checks, "_MAX_ROWS", 4 * batch_rows)
    heights = (1, 2, 1, 2, 9)
    paths = [tmp_path / f"{place}.parquet" for place in range(len(heights))]
    for place, path in enumerate(paths):
        pl.DataFrame({"a": [place] * heights[place], "b": range(heights[place])}).write_parquet(path)
    batches = [batch.rows() for batch in checks._batches(paths)]
    assert all(len(batch) <= batch_rows or len({place for place, _ in batch}) == 1 for batch in batches)
    last = [[(place, row) for row in range(height)][-4 * batch_rows :] for place, height in enumerate(heights)]
    assert [row for batch in batches for row in batch] == [row for rows in last for row in rows]
    assert not {place for one, next_one in pairwise(batches) for place, _ in one if place == next_one[0][0]}


# ---- runs on two days


def runs_on(root: Path, number: int, day: date | None, *job_ids: str) -> TableFile:
    """Write the jobs of a day, with the columns that the checks need."""
    path = root / f"jobs-{number}.parquet"
    started_at = datetime(2026, 3, 1, tzinfo=UTC)
    pl.DataFrame(
        {"cluster": "default", "job_id": list(job_ids), "started_at": started_at, "ended_on": day},
        schema_overrides={"ended_on": pl.Date, "started_at": pl.Datetime("us", "UTC")},
    ).write_parquet(path)
    return TableFile("jobs", str(path), day)


@pytest.mark.parametrize(
    ("days_of", "doubled"),
    [
        ([(DAYS[0], "1", "2"), (DAYS[1], "3")], {}),
        ([(DAYS[0], "1", "2"), (DAYS[1], "3", "2")], {DAYS[0]: 1, DAYS[1]: 1}),
        ([(DAYS[0], "1", "2"), (None, "1", "2")], {DAYS[0]: 2, None: 2}),
        ([(date(2026, 2, 1), "1"), (DAYS[1], "1", "4")], {DAYS[1]: 1}),
    ],
)
def test_run_on_two_days_violates_the_key_of_rebuilt_days(
    days_of: list[tuple[date | None, str]], doubled: dict[date | None, int], tmp_path: Path
) -> None:
    reads = tuple(runs_on(tmp_path, number, *told) for number, told in enumerate(days_of))
    piece = WorkItem("checks", "checks", "", reads, (), tuple(DAYS), Settings(), "built", "")
    twice = checks._on_two_days(StepContext(tmp_path, piece))
    assert {day: count for _, day, count, _ in twice.rows()} == doubled
    by_day = frame_of(*(found(day, name, 0) for day in DAYS for name in ("jobs", "filesystem_rates")))
    told = checks._fail_duplicate_keys(by_day, twice)
    failed = told.filter(~pl.col("success"))
    assert dict(failed.select("day", "unexpected_count").rows()) == doubled
    assert set(failed["table_name"]) <= {"jobs"}
    assert told.drop("success", "unexpected_count", "observed").equals(
        by_day.drop("success", "unexpected_count", "observed")
    )
    for text in failed["observed"]:
        assert json.loads(text)["examples"][0]["job_id"] in {"1", "2"}


@pytest.mark.long
@pytest.mark.usefixtures("checks_here")
def test_run_on_two_days_is_not_released(landed_site: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A faulty plan omits the day on which the run previously ended."""
    store = Store(tmp_path / "warehouse")
    shutil.copytree(landed_site.root, store.root)
    land(store, tmp_path, LATER)
    run_night(store)
    land(store, tmp_path, LATER.replace("2026-03-05T02", "2026-03-06T02"))
    stale = planning._News.stale

    def forgetful(*arguments: Any) -> Any:
        polls, jobs, *others = stale(*arguments)
        return polls, [day for day in jobs if day != date(2026, 3, 5)], *others

    monkeypatch.setattr(planning._News, "stale", forgetful)
    # a model that reads jobs of both days refuses them before the gate does
    with pytest.raises((GateFailed, ContractError), match=r"key_unique in \d row"):
        run_night(store)
    monkeypatch.setattr(planning._News, "stale", stale)
    assert run_night(store).sequence == 2
