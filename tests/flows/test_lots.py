"""Nights publish the same tables whether small traces were landed together or separately."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from iosig.flows.steps import networks
from iosig.warehouse.store import lots
from iosig.warehouse.store.store import Store
from tests.nights import query_release, run_night
from tests.small_traces import land, write


@pytest.mark.usefixtures("quick_checks")
@pytest.mark.long
def test_traces_landed_together_and_separately_give_equal_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = write(tmp_path / "traces", 12)
    together, single = Store(tmp_path / "together"), Store(tmp_path / "single")
    land(together, paths)
    with monkeypatch.context() as patch:
        patch.setattr(lots, "MIN_INPUTS", 1000)
        land(single, paths)
    for store in (together, single):
        land(store, paths[2:4], replace=True)
    tables = ("trace_jobs", "trace_counters", "trace_signals", "periods", "classes", "network_runs", "trace_requests")
    found = []
    for store in (together, single):
        release = run_night(store)
        rows_of = {}
        for name in tables:
            rows_of[name] = query_release(store, release, f"from {name} order by all")
        found.append(rows_of)
    for name in tables:
        assert_frame_equal(*(rows_of[name] for rows_of in found))
        assert found[0][name].height


@pytest.mark.slow
@pytest.mark.usefixtures("quick_checks")
def test_networks_built_in_chunks_equal_networks_built_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: dict[bool, dict[str, pl.DataFrame]] = {}
    names: dict[bool, list[str]] = {}
    for is_divided in (False, True):
        if is_divided:
            monkeypatch.setattr(networks, "_BATCH_ROWS", 20)
            monkeypatch.setattr(networks, "_CHUNK_ROWS", 60)
        store = Store(tmp_path / f"warehouse-{is_divided}")
        land(store, write(tmp_path / "traces", 40))
        executed = names[is_divided] = []
        release = run_night(store, report=lambda name, *_, into=executed: into.append(name))
        found[is_divided] = {}
        for table in networks.TABLES:
            found[is_divided][table.name] = query_release(store, release, f"from {table.name}")
    for name, rows in found[False].items():
        assert_frame_equal(rows, found[True][name])
    assert found[True]["network_runs"].height == 40
    own = [name for name in names[True] if name.startswith("networks")]
    count = len(own) - 1
    assert count > 3
    assert own == [*(f"networks undated {number + 1}/{count}" for number in range(count)), "networks undated"]
    assert [name for name in names[False] if name.startswith("networks")] == ["networks undated"]
