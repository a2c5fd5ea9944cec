"""Nights over small traces that were landed together: what they publish does not depend on it."""

from __future__ import annotations

from pathlib import Path

import pytest
from polars.testing import assert_frame_equal

from flows.night import order
from flows.settings import Settings
from tests.small_traces import land, write
from warehouse.releases.reading import opened
from warehouse.store import lots
from warehouse.store.store import Store


@pytest.mark.slow
@pytest.mark.usefixtures("quick_checks")
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
        release = order.run_inline(store, Settings(), lambda *_: None)
        rows_of = {}
        for name in tables:
            with opened(store, release, name) as connection:
                rows_of[name] = connection.sql(f"from {name} order by all").pl()
        found.append(rows_of)
    for name in tables:
        assert_frame_equal(*(rows_of[name] for rows_of in found))
        assert found[0][name].height
