"""Landed rows are validated on the days that a run recomputes, and verdicts name the landed file and line."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from iosig.expectations import suites
from iosig.flows.steps import order
from iosig.flows.steps.checks import verdicts_on
from iosig.flows.steps.items import Day, execute
from iosig.flows.steps.plan import make_plan
from iosig.flows.steps.run import Run
from iosig.flows.steps.step import Step
from iosig.settings.model import Settings
from iosig.warehouse.contracts import Table, frames, table
from iosig.warehouse.contracts.jobs import JOB_RECORDS
from iosig.warehouse.contracts.polls import POLLS
from iosig.warehouse.engine_paths import read_parquet
from iosig.warehouse.releases import releases
from iosig.warehouse.sources.protocol import Batch
from iosig.warehouse.store import landing
from iosig.warehouse.store.store import Store
from tests.budget import one_in
from tests.expectations.cases import BROKEN, CHECKED, identify, row_of
from tests.nights import Night, land_files, query_release, run_night

LANDED = [found for found in CHECKED if suites.is_landed_only(found)]
HEADER = "JobID|User|JobName|NNodes|NTasks|Start|End|State"
#: the second record has fewer tasks than nodes
JOB_LOG = f"""{HEADER}
900|ann|ior|8|64|2026-03-01T00:00:00Z|2026-03-01T01:00:00Z|COMPLETED
901|ann|ior|8|4|2026-03-01T02:00:00Z|2026-03-01T03:00:00Z|COMPLETED
"""
LATER = f"{HEADER}\n902|bob|ior|8|4|2026-03-05T01:00:00Z|2026-03-05T02:00:00Z|COMPLETED\n"


def find_step(found: Table) -> Step:
    """Return the step that validates a landed table."""
    names = {verdicts_on(found).name}
    (step,) = (step for step in order.STEPS if names & {table.name for table in step.writes})
    return step


def validate(store: Store, found: Table, day: Day, days: Sequence[Day]) -> pl.DataFrame:
    """Execute the check of a landed table alone, whichever traces have landed."""
    run = Run(store, Settings(), make_plan(store, Settings()))
    item = find_step(found).item(run, day, days)
    (written,) = (file for file in item.writes if file.table == verdicts_on(found).name)
    reads = tuple(run.find_landings((found,), day if found.landed_by else None))
    execute(replace(item, reads=reads, writes=(written,)), store.root)
    return read_parquet(store.root / written.path)


def land_text(store: Store, folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(text)
    assert [arrival.has_refusals for arrival in land_files(store, folder / name)] == [False]


def read_quality(store: Store, query: str) -> list[Any]:
    return query_release(store, releases.find(store, None), query).rows()


def test_every_landed_table_has_one_check() -> None:
    assert [find_step(found).is_check for found in LANDED] == [False] * len(LANDED)


@pytest.mark.parametrize("found", one_in(4, LANDED, slow=2), ids=lambda found: found.name)
def test_broken_row_of_each_kind_names_its_file(found: Table, tmp_path: Path) -> None:
    """Every rule of the suite, except those that compare rows with their landing, finds a landed row."""
    own = frames.schema(table(found.name))
    cases = [
        (rules, change)
        for of, rules, change in BROKEN
        if of == found.name and rules and not {"landing_id", "landed_at"} & change.keys()
    ]
    rows = [row_of(found, **identify(found, place), **change) for place, (_, change) in enumerate(cases)]
    numbered = pl.DataFrame(
        [{**row, "line": place + 1, "time_s": float(place)} for place, row in enumerate(rows)],
        schema={**frames.schema(found), "line": pl.Int64(), "time_s": pl.Float64()},
        orient="row",
    )
    batch = Batch(table(found.name), numbered.select(list(own)))
    store = Store(tmp_path)
    landing.land_batches(store, "input.txt", "test", [batch])
    step = find_step(found)
    days = step.days(Run(store, Settings(), make_plan(store, Settings()))) or (None,)

    verdicts = pl.concat(validate(store, found, day, (day,) if step.is_daily else days) for day in days)

    for name in sorted(set().union(*(rules for rules, _ in cases))):
        failed = verdicts.filter(expectation=name).filter(~pl.col("success"))
        named = [example for text in failed["observed"] for example in json.loads(text)["examples"]]
        places = [place for place, (rules, _) in enumerate(cases) if name in rules]
        assert [example["source_file"] for example in named] == ["input.txt"] * len(places), name
        if "line" in found.column_names:
            assert sorted(example["line"] for example in named) == [place + 1 for place in places]


@pytest.mark.slow
@pytest.mark.usefixtures("checks_here")
def test_verdicts_of_other_days_are_carried_over(checked_night: Night, tmp_path: Path) -> None:
    store = checked_night.copy(tmp_path / "warehouse")
    query = "select day, row_count from quality_daily where table_name = '{}' and expectation = '{}' order by all"
    polls = query.format(POLLS.name, "polled_before_landing")
    assert [row_count for _, row_count in read_quality(store, polls)] == [1438, 1442]
    before = read_quality(store, polls)
    land_text(store, tmp_path, "jobs.txt", JOB_LOG)
    run_night(store)
    assert read_quality(store, polls) == before
    ((observed,),) = read_quality(
        store, "select observed from quality where table_name = 'job_records' and expectation = 'tasks_cover_nodes'"
    )
    (example,) = json.loads(observed)["examples"]
    assert example == {"source_file": "jobs.txt", "line": 3, "task_count": 4, "node_count": 8}
    assert json.loads(observed)["failing_days"] == ["2026-03-01"]
    land_text(store, tmp_path, "later.txt", LATER)
    run_night(store)
    jobs = query.format(JOB_RECORDS.name, "tasks_cover_nodes")
    assert (date(2026, 3, 1), 2) in read_quality(store, jobs)
    assert (date(2026, 3, 5), 1) in read_quality(store, jobs)
    assert read_quality(store, polls) == before
