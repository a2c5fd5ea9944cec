"""Nights over small traces that were landed together: what they publish does not depend on it."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from iosig.flows import nightly
from iosig.flows.steps import networks
from iosig.flows.steps.items import StepContext, WorkItem
from iosig.settings.model import EngineSettings, Settings
from iosig.warehouse.releases.reading import opened
from iosig.warehouse.store import landing, lots
from iosig.warehouse.store.store import Store
from tests.small_traces import land, write


@pytest.mark.slow
@pytest.mark.usefixtures("quick_checks")
@pytest.mark.long
def test_a_night_and_its_queries_are_those_of_each_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = write(tmp_path / "traces", 12)
    together, single = Store(tmp_path / "together"), Store(tmp_path / "single")
    land(together, paths)
    with monkeypatch.context() as patch:
        patch.setattr(lots, "FEWEST_INPUTS", 1000)
        land(single, paths)
    for store in (together, single):
        land(store, paths[2:4], replace=True)
    tables = ("trace_jobs", "trace_counters", "trace_signals", "periods", "classes", "network_runs", "trace_requests")
    found = []
    for store in (together, single):
        release = nightly.run_inline(store, Settings(), lambda *_: None)
        rows_of = {}
        for name in tables:
            with opened(store, release, name) as connection:
                rows_of[name] = connection.sql(f"from {name} order by all").pl()
        found.append(rows_of)
    for name in tables:
        assert_frame_equal(*(rows_of[name] for rows_of in found))
        assert found[0][name].height


@pytest.mark.slow
@pytest.mark.long
def test_networks_of_many_runs_are_the_same_in_several_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path / "warehouse")
    land(store, write(tmp_path / "traces", 40))
    landings = landing.ledger(store)
    jobs = [
        {"ended_on": None, "trace_id": lot.trace_id, "source_file": lot.source_file, "process_count": 4}
        for lot in landings
    ]
    runs = [
        (job, {table: [(lot, part) for part in lot.parts if part.table == table.name] for table in networks.LANDED})
        for job, lot in zip(jobs, landings, strict=True)
    ]
    monkeypatch.setattr(networks, "_ROWS_AT_A_TIME", 50)
    found = []
    for worker_count in (1, 2):
        settings = Settings(engine=EngineSettings(worker_count=worker_count))
        item = WorkItem("networks", "networks", "", (), (), (None,), settings, "builds", "")
        rows = list(networks._each(StepContext(store.root, item), runs))
        found.append(
            {table: pl.concat([each[table] for each in rows if table in each]) for table in networks.TABLES[:1]}
        )
    (one,), (other,) = (each.values() for each in found)
    assert_frame_equal(one, other)
    assert one["trace_id"].to_list() == [lot.trace_id for lot in landings]
    assert len(networks._chunks(runs)) > 3
    assert multiprocessing.active_children() == []
