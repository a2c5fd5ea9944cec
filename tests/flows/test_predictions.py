"""The night lands predictions from the journal once and publishes them by day, and documented queries answer."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from iosig.expectations import suites
from iosig.expectations.gate import check
from iosig.flows.steps import predictions
from iosig.settings.model import PredictionSettings, Settings
from iosig.streams.landing import Arrival
from iosig.warehouse.contracts import frames
from iosig.warehouse.contracts.predictions import PREDICTIONS
from iosig.warehouse.errors import NothingToDo
from iosig.warehouse.releases import locations, releases
from iosig.warehouse.releases.releases import Release
from iosig.warehouse.sources.predictions.lines import format_line
from iosig.warehouse.store import landing
from iosig.warehouse.store.journal import Journal, State
from iosig.warehouse.store.store import Store
from tests.nights import Cli, land_files, query_release, run_night
from tests.prediction_rows import NO_PERIOD, NOON, job_prediction, prediction

pytestmark = pytest.mark.usefixtures("quick_checks_throughout")

PAGE = Path(__file__).parents[2] / "docs" / "predictions-sql.md"
DAY = timedelta(days=1)
KEEP_NONE = Settings(predictions=PredictionSettings(keep_days=0))


def ask(store: Store, query: str, release: Release | None = None) -> list[dict[str, Any]]:
    return query_release(store, release or releases.find(store, None), query).to_dicts()


def commit(store: Store, rows: Sequence[dict[str, Any]]) -> None:
    """Commit each row in a separate transaction, as a follower does."""
    with Journal(store.journal) as journal:
        for row in rows:
            journal.follow(row["followed_id"])
            journal.commit([row], [State(row["followed_id"], {"evaluation": row["evaluation"]})])


def printed(path: Path, rows: Sequence[dict[str, Any]]) -> Path:
    path.write_text("".join(f"{format_line(row)}\n" for row in rows), encoding="utf-8")
    return path


def land(store: Store, path: Path, *, replace: bool = False) -> None:
    (arrival,) = land_files(store, path, replace=replace)
    assert not arrival.has_refusals


def published(store: Store) -> list[dict[str, Any]]:
    return ask(store, "from predictions order by predicted_at, followed_id")


def files(store: Store, release: Release, table: str = "predictions") -> dict[date | None, Path]:
    return {locations.parse_day(path): path for path in releases.files_of(store, release)[table]}


def on(day: int, evaluation: int, followed_id: str = "/a", **changes: Any) -> dict[str, Any]:
    """A prediction `day` days after the first day."""
    return prediction(evaluation, followed_id, predicted_at=NOON + day * DAY + timedelta(seconds=evaluation), **changes)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "warehouse")


def landed_counts(store: Store) -> list[int]:
    """Return the number of rows of each landing, in the order of landing."""
    return [lot.row_count() for lot in landing.ledger(store)]


def land_journal(store: Store, settings: Settings | None = None) -> list[Arrival]:
    return list(predictions.land_journal(store, settings or Settings()))


# ---- published table

FIRST = (on(0, 1, **NO_PERIOD), on(0, 2), job_prediction(1), on(5, 1, "/b"))
LATER = (on(1, 3), job_prediction(2, predicted_at=NOON + DAY))


@pytest.mark.long
def test_rows_of_journal_and_files_are_published_once_and_by_day(store: Store, tmp_path: Path) -> None:
    commit(store, FIRST)
    path = printed(tmp_path / "a.jsonl", FIRST[:2])
    land(store, path)
    first = run_night(store)
    assert published(store) == sorted(FIRST, key=lambda row: (row["predicted_at"], row["followed_id"]))
    # one row contradicts the known row of its day, and another is of the next day
    land(store, printed(tmp_path / "b.jsonl", [on(0, 1, period_s=7.0), on(1, 2), on(1, 3)]))
    (tmp_path / "cut.jsonl").write_text('{"format":"iosig-prediction/1","predic')
    (arrival,) = land_files(store, tmp_path / "cut.jsonl", allows_refusals=True)
    assert arrival.has_refusals
    commit(store, LATER)
    second = run_night(store)
    assert published(store) == sorted(
        (*FIRST, *LATER[1:], on(1, 3)), key=lambda row: (row["predicted_at"], row["followed_id"])
    )
    assert (first.dates, second.dates) == (("2026-02-09", "2026-02-14"), ("2026-02-09", "2026-02-10"))
    other = NOON.date() + 5 * DAY
    assert files(store, second)[other] == files(store, first)[other]
    taken = ask(store, "from quarantine order by day")
    assert [(row["day"], row["rule"]) for row in taken] == [
        (NOON.date(), "predictions_agree"),
        (NOON.date() + DAY, "predictions_agree"),
    ]
    assert json.loads(taken[0]["row_json"])["prediction"]["period_s"] == 7.0
    (refused,) = ask(store, "from rejects")
    assert (refused["source_file"], refused["line"]) == ("cut.jsonl", 1)
    with pytest.raises(NothingToDo):
        run_night(store)


@pytest.mark.long
def test_replaced_landing_yields_to_the_next_earliest_row(store: Store, tmp_path: Path) -> None:
    path = printed(tmp_path / "a.jsonl", [on(0, 1)])
    land(store, path)
    land(store, printed(tmp_path / "b.jsonl", [on(1, 1), on(1, 2)]))
    run_night(store)
    assert [row["predicted_on"] for row in published(store)] == [NOON.date(), NOON.date() + DAY]
    land(store, path, replace=True)
    run_night(store)
    assert [row["predicted_on"] for row in published(store)] == [NOON.date() + DAY] * 2


@pytest.mark.long
def test_new_predictions_rebuild_only_the_predictions_of_their_days(landed_site: Store, tmp_path: Path) -> None:
    """A day keeps its polls, jobs and quarantine when predictions of it arrive; other days are not recomputed."""
    store = Store(tmp_path / "warehouse")
    shutil.copytree(landed_site.root, store.root)
    settings = Settings.model_validate({"polls": {"max_controller_bytes_per_s": 2.05e6}})
    first = run_night(store, settings)
    assert not store.journal.exists()
    assert releases.files_of(store, first)["predictions"] == []
    taken = ask(store, "select * from quarantine order by all")
    assert taken
    commit(store, [on(0, 1), prediction(2, "/a", predicted_at=datetime(2026, 3, 3, 1, tzinfo=UTC))])
    steps: list[str] = []
    second = run_night(store, settings, lambda name, *_: steps.append(name))
    assert second.dates == ("2026-02-09", "2026-03-03")
    anew = ("stage polls", "samples", "job i/o", "classes 2", "traces ")
    assert not [name for name in steps if name.startswith(anew)]
    assert ask(store, "select * from quarantine order by all") == taken
    for table in ("jobs", "filesystem_rates", "polls_daily", "job_io", "samples"):
        assert files(store, second, table) == files(store, first, table)
    assert len(published(store)) == 2


# ---- landing of the journal


def test_landed_rows_are_pruned_from_the_journal_and_states_are_kept(store: Store) -> None:
    commit(store, FIRST)
    land_journal(store)
    with Journal(store.journal) as journal:
        assert journal.rows_after(0, 10)[0].height == len(FIRST)
    land_journal(store, KEEP_NONE)
    commit(store, LATER)
    with Journal(store.journal) as journal:
        assert journal.rows_after(0, 10)[0].height == len(LATER)
        assert journal.state("/a") == State("/a", {"evaluation": 3})
    land_journal(store, KEEP_NONE)
    assert landed_counts(store) == [len(FIRST), len(LATER)]


def test_follower_commits_while_the_journal_is_landed(store: Store) -> None:
    with Journal(store.journal) as journal:
        journal.follow("/a")
        for evaluation in (1, 2):
            journal.commit([on(0, evaluation)], [State("/a")])
            land_journal(store)
    assert landed_counts(store) == [1, 1]


def test_damaged_journal_is_refused_and_left_unchanged(store: Store) -> None:
    store.root.mkdir()
    content = b"SQLite format 3\x00 but no further"
    store.journal.write_bytes(content)
    (arrival,) = land_journal(store)
    assert arrival.has_refusals
    assert "is not a journal of predictions" in arrival.line()
    assert store.journal.read_bytes() == content


def test_recreated_journal_is_landed_from_its_beginning(store: Store) -> None:
    commit(store, FIRST)
    land_journal(store)
    store.journal.unlink()
    commit(store, [on(0, 1, "/another"), on(0, 2, "/another")])
    land_journal(store)
    assert landed_counts(store) == [len(FIRST), 2]


def test_missing_journal_lands_nothing(store: Store) -> None:
    assert land_journal(store) == []
    assert not store.root.exists()


# ---- documented queries


@dataclass(frozen=True)
class Followed:
    """A warehouse and the release with its predictions."""

    store: Store


def followed_rows() -> Iterator[dict[str, Any]]:
    """Yield predictions of a run with bursts 10 s apart, then 20 s, and of a running job of a small site."""
    starts = [0.0, 10.0, 20.0, 30.0, 50.0, 70.0, 90.0]
    for number, (start, period) in enumerate(zip(starts, [0, 0, 10, 10, 10, 20, 20], strict=True), start=1):
        known = {"period_s": float(period), "frequency_hz": 1 / period} if period else NO_PERIOD
        times = {
            "next_burst_earliest_s": start + period - 1,
            "next_burst_start_s": start + period,
            "next_burst_latest_s": start + period + 1,
        }
        is_change = number == 6
        yield prediction(
            number,
            "/scratch/ior.jsonl",
            **known
            | (times if period else {})
            | {
                "window_end_s": start + 2,
                "phase_count": number,
                "last_phase_start_s": start,
                "phase_state": "start" if not period else f"period_{1 if period == 10 else 2}",
                "change": "longer" if is_change else None,
                "change_s": 30.0 if is_change else None,
                "transition_cause": "change_point_up" if is_change else None,
                "events": "rotated,refused" if number == 4 else "",
                "is_final": number == 7,
            },
        )
    yield job_prediction(1, "101", cluster="default", filesystem="default", direction="read")


@pytest.fixture(scope="module")
def followed(landed_site: Store, tmp_path_factory: pytest.TempPathFactory, quick_checks_throughout: None) -> Followed:
    """The small site's warehouse, in which a trace and a job were followed. Must not be changed."""
    store = Store(tmp_path_factory.mktemp("followed") / "warehouse")
    shutil.copytree(landed_site.root, store.root)
    rows = list(followed_rows())
    commit(store, rows)
    other = printed(store.root.parent / "other.jsonl", [rows[0] | {"volume_bytes": 1.0}])
    land_journal(store)
    land(store, other)
    run_night(store)
    return Followed(store)


@pytest.mark.long
def test_only_incomplete_inputs_break_the_checks(followed: Followed) -> None:
    found = pl.DataFrame(published(followed.store), schema=frames.schema(PREDICTIONS))
    assert frames.require(found, PREDICTIONS).select(PREDICTIONS.key).is_unique().all()
    # the real check, which the night's fixture replaces
    broken = check(PREDICTIONS, found, {}).verdicts.filter(pl.col("unexpected_count") > 0)
    assert broken.select("expectation", "unexpected_count").rows() == [("input_is_complete", 1)]


def queries() -> Iterator[tuple[str, str]]:
    """Yield each query of the page with its title."""
    title = ""
    for block in re.findall(r"^## [^\n]*$|```sh\n.*?```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL):
        if block.startswith("## "):
            title = block[3:]
        else:
            words = shlex.split(block.removeprefix("```sh").removesuffix("```"))
            assert words[:2] == ["iosig", "sql"]
            yield title, words[2]


QUERIES = dict(queries())


@pytest.mark.slow
@pytest.mark.parametrize("title", list(QUERIES), ids=[title.replace(" ", "-") for title in QUERIES])
def test_documented_query_returns_rows(followed: Followed, title: str) -> None:
    assert ask(followed.store, QUERIES[title]), "the night has what it asks for"


@pytest.mark.slow
def test_latest_evaluation_is_returned_per_followed_input(followed: Followed) -> None:
    told = ask(followed.store, QUERIES["Latest evaluation"])
    assert [(row["followed_id"], row["period_s"], row["is_final"]) for row in told] == [
        ("edison/101 on snx11025", 8.75, False),
        ("/scratch/ior.jsonl", 20.0, True),
    ]


@pytest.mark.slow
def test_next_bursts_are_returned_as_utc_times(followed: Followed) -> None:
    (told,) = ask(followed.store, QUERIES["Next bursts"])
    row = job_prediction(1)
    ahead = timedelta(seconds=row["next_burst_start_s"] - row["window_end_s"])
    assert abs(told["next_burst_at"] - (row["predicted_at"] + ahead)) < timedelta(milliseconds=1)


@pytest.mark.slow
def test_accuracy_compares_predictions_with_the_next_burst(followed: Followed) -> None:
    """Predicted 30, 40, 60, 90; the bursts began at 30, 50, 70, 90."""
    (told,) = ask(followed.store, QUERIES["Accuracy"])
    assert (told["predictions"], told["median_error_s"], told["within_ratio"]) == (4, 5.0, 0.5)


@pytest.mark.slow
def test_changes_and_phases_are_returned_with_durations(followed: Followed) -> None:
    (changed,) = ask(followed.store, QUERIES["Changes"])
    assert (changed["period_before_s"], changed["period_s"], changed["detection_delay_s"]) == (10.0, 20.0, 42.0)
    phases = [row for row in ask(followed.store, QUERIES["Phases"]) if row["followed_id"] == "/scratch/ior.jsonl"]
    assert {row["phase_state"]: row["duration_s"] for row in phases} == {
        "start": 20.0,
        "period_1": 50.0,
        "period_2": 20.0,
    }
    assert phases[-1]["last_cause"] in ("change_point_up", None)


@pytest.mark.slow
def test_input_events_nightly_comparison_and_contradictions_are_returned(followed: Followed) -> None:
    assert [(row["event"], row["inputs"]) for row in ask(followed.store, QUERIES["Inputs"])] == [
        ("refused", 1),
        ("rotated", 1),
    ]
    (beside,) = ask(followed.store, QUERIES["Comparison with the nightly run"])
    assert beside["predicted"] == "periodic"
    (contradicted,) = ask(followed.store, QUERIES["Contradictions"])
    assert contradicted["followed_id"] == "/scratch/ior.jsonl"


@pytest.mark.slow
def test_predictions_can_be_queried_and_exported(followed: Followed, cli: Cli, tmp_path: Path) -> None:
    query = ["sql", "select count(*) as n from predictions", "--format", "jsonl"]
    code, out, _ = cli("--warehouse", followed.store.root, *query)
    assert (code, json.loads(out)) == (0, {"n": 8})
    target = tmp_path / "predictions.parquet"
    assert cli("--warehouse", followed.store.root, "export", "predictions", "--output", target)[0] == 0
    assert pl.read_parquet(target).columns == list(PREDICTIONS.column_names)


def test_checks_of_predictions_never_block_the_release(store: Store) -> None:
    """A wrong row raises a warning only: no night should wait for a file of another user."""
    assert {rule.severity for rule in suites.load_suite_rules(PREDICTIONS)} == {"warning", "info"}


@pytest.mark.slow
def test_other_readers_can_open_the_journal_after_a_night(followed: Followed) -> None:
    with closing(sqlite3.connect(f"{followed.store.journal.as_uri()}?mode=ro", uri=True)) as connection:
        assert connection.execute("select count(*) from predictions").fetchone() == (8,)
