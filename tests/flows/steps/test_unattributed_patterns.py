"""The night finds patterns in residual traffic, with stable ids and the applications that may cause them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import polars as pl
import pytest

from iosig.flows.steps.items import StepContext, TableFile, WorkItem
from iosig.flows.steps.run import Run
from iosig.flows.steps.unattributed_patterns import _assign_ids, _read, find_patterns
from iosig.settings.model import Settings
from iosig.warehouse.contracts import frames
from iosig.warehouse.contracts.attribution import ATTRIBUTED_IO, UNATTRIBUTED_PATTERNS
from iosig.warehouse.contracts.jobs import JOBS
from iosig.warehouse.contracts.polls import TICKS

BEGAN = datetime(2026, 3, 3, tzinfo=UTC)
STEP_S = 10
COUNT = 8640


def at(steps: float) -> datetime:
    return BEGAN + timedelta(seconds=steps * STEP_S)


TRAIN = tuple(range(60, COUNT - 20, 180))


def ticks(count: int = COUNT, starts: Sequence[int] = TRAIN) -> pl.DataFrame:
    """Return a day of polls: write bursts, and fluctuating background."""
    rng = np.random.default_rng(3)
    written = rng.lognormal(16.0, 0.3, count)
    for start in starts:
        written[start : start + 6] += 3e10
    rows = [
        {
            "filesystem": "lake",
            "polled_at": at(place + 1),
            "interval_s": 10.0,
            "read_bytes": 0,
            "written_bytes": int(each),
        }
        for place, each in enumerate(written)
    ]
    return pl.DataFrame(rows, schema=frames.schema(TICKS))


def job(application: str, start: float, end: float, **more: Any) -> dict[str, Any]:
    told = {"application_id": f"a%2Fb/{application}/8", "is_application_run": True}
    return told | {"started_at": at(start), "ended_at": at(end), "filesystem": None, "partition": "batch"} | more


def found(
    folder: Path,
    polls: pl.DataFrame,
    jobs: list[dict[str, Any]] | None = None,
    explained: list[dict[str, Any]] | None = None,
    before: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """Run the step on these tables, and return the rows that it writes."""
    tables = {
        TICKS: polls,
        ATTRIBUTED_IO: pl.DataFrame(explained or [], schema=frames.schema(ATTRIBUTED_IO)),
        JOBS: pl.DataFrame(jobs or [], schema=frames.schema(JOBS)),
    }
    if before is not None:
        tables[UNATTRIBUTED_PATTERNS] = before
    reads = []
    for table, rows in tables.items():
        rows.write_parquet(folder / f"{table.name}.parquet")
        reads.append(TableFile(table.name, f"{table.name}.parquet", is_released=table is UNATTRIBUTED_PATTERNS))
    writes = (TableFile(UNATTRIBUTED_PATTERNS.name, "found.parquet"),)
    settings = Settings(partitions={"batch": ["lake"], "else": ["pond"]})
    item = WorkItem(
        "unnamed patterns", "unnamed patterns", "m:f", tuple(reads), writes, (None,), settings, "builds", ""
    )
    count = find_patterns(StepContext(folder, item))
    written = frames.require(pl.read_parquet(folder / "found.parquet"), UNATTRIBUTED_PATTERNS)
    assert written.height == count
    return written


def test_periodic_pattern_is_found_and_keeps_its_id(tmp_path: Path) -> None:
    first = found(tmp_path, ticks())
    (row,) = first.filter(pl.col("direction") == "write").to_dicts()
    assert (row["outcome"], row["application_id"], row["occurrence_burst_count"]) == ("unattributed", None, 1)
    assert row["period_s"] == pytest.approx(1800, rel=1e-3)
    assert row["occurrence_bytes"] == pytest.approx(1.8e11, rel=0.01)
    assert row["first_occurrence_at"] == row["known_since_at"] == at(60)
    assert row["occurrence_starts_s"][:3] == [0, 1800, 3600]
    assert row["pattern_bytes_per_s"] == pytest.approx([3e9] * 6, rel=0.02)
    assert first.filter(pl.col("direction") == "read")["outcome"].to_list() == ["no_pattern"]
    later = found(tmp_path, ticks()[3000:], before=first).filter(pl.col("direction") == "write")
    assert later["pattern_id"].to_list() == [row["pattern_id"]]
    assert later["known_since_at"].to_list() == [at(60)]
    assert later["first_occurrence_at"][0] > at(3000)
    assert found(tmp_path, ticks()[3000:])["pattern_id"].drop_nulls().to_list() != [row["pattern_id"]]


def test_application_present_at_every_occurrence_is_named(tmp_path: Path) -> None:
    starts = np.sort(np.random.default_rng(4).choice(np.arange(20, COUNT - 60, 60), 40, replace=False)).tolist()
    # a job of another partition ran as well, and cannot be the cause
    own = [job("ior", start - 10, start + 20) for start in starts]
    other = [job("s3d", start - 10, start + 20, partition="else") for start in starts]
    (row,) = found(tmp_path, ticks(starts=starts), own + other).filter(pl.col("direction") == "write").to_dicts()
    assert (row["outcome"], row["application_id"]) == ("attributed", "a%2Fb/ior/8")
    assert row["covering_run_count"] == row["application_run_count"] == len(starts)


def test_attributed_traffic_is_not_a_pattern(tmp_path: Path) -> None:
    explained = [
        {"filesystem": "lake", "direction": "write", "minute_at": at(6 * minute), "attributed_bytes": 1.8e11}
        for start in TRAIN
        for minute in (start // 6 + 1, start // 6 + 2)
    ]
    assert found(tmp_path, ticks(), explained=explained)["outcome"].to_list() == ["no_pattern"] * 2


def test_few_hours_of_polls_are_too_short(tmp_path: Path) -> None:
    assert found(tmp_path, ticks(600))["outcome"].to_list() == ["too_short"] * 2
    assert found(tmp_path, ticks(0)).is_empty()


def test_step_reads_the_last_two_weeks() -> None:
    days = [date(2026, 3, 1) + timedelta(days=number) for number in range(30)]
    run = SimpleNamespace(live=lambda of: [TableFile(of.name, f"{of.name}/{day}", day) for day in (*days, None)])
    read = list(_read(cast(Run, run), None))
    assert sum(file.table == TICKS.name and file.day is not None for file in read) == 14
    assert min(file.day for file in read if file.day) == date(2026, 3, 17)
    empty = SimpleNamespace(live=lambda of: [])
    assert list(_read(cast(Run, empty), None)) == []


def test_reassigned_pattern_id_is_not_used_twice() -> None:
    """A pattern at the start of an old pattern gets a new id if a later pattern matches the old one better."""
    key = {"filesystem": "lake", "direction": "read"}

    def rows(*told: tuple[float, list[float], float]) -> pl.DataFrame:
        return pl.DataFrame(
            {
                "first_occurrence_at": [at(first) for first, *_ in told],
                "occurrence_starts_s": [appeared for _, appeared, _ in told],
                "occurrence_bytes": [7.2e8 for _ in told],
                "occurrence_duration_s": [lasted for *_, lasted in told],
            }
        )

    nothing = frames.empty(UNATTRIBUTED_PATTERNS)
    hours = [3600.0 * hour for hour in range(12)]
    before = _assign_ids(rows((0, hours, 110.0)), nothing, key)
    now = _assign_ids(rows((0, [0.0, *(each + 1800.0 for each in hours)], 110.0), (720, hours[:9], 120.0)), before, key)

    assert now["pattern_id"][1] == before["pattern_id"][0]
    assert now["pattern_id"].is_unique().all()
    again = _assign_ids(rows((0, [0.0, *(each + 1800.0 for each in hours)], 110.0)), now, key)
    assert again["pattern_id"][0] == now["pattern_id"][0]
