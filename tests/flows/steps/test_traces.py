"""The night matches traces with jobs, counts them once, computes their signals and classifies them."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest

from iosig.warehouse.releases.reading import open_release
from iosig.warehouse.releases.releases import Release
from iosig.warehouse.store.store import Store
from tests.flows.traced_runs import land, trace
from tests.nights import FoundByChecks, check_here, land_files, query_release, run_night
from tests.warehouse.releasing import publish

WRITE = {"module": "POSIX", "direction": "write"}


def mixed_traces(store: Store) -> dict[str, str]:
    """Land a trace of each kind; return their ids by name."""
    posix = {"POSIX": {}}
    start = [{"request_bytes": 6e6, "start_s": 10.0 * k, "end_s": 10.0 * k + 5, **WRITE} for k in range(20)]
    counted: dict[str, Any] = {"module": "POSIX", "written_bytes": 120_000_000, "read_bytes": 0}
    timed = counted | {"write_start_s": 0.0, "write_end_s": 195.0}
    return {
        "requests": land(
            store,
            "requests",
            trace(
                started_min=-98,
                job_id="100",
                modules=posix | {"DXT_POSIX": {}},
                records=[timed],
                requests=start,
            ),
        ),
        "heatmap": land(
            store,
            "heatmap",
            trace(
                started_min=-58,
                job_id="101",
                duration_s=1590.0,
                modules=posix | {"HEATMAP": {}},
                records=[timed],
                heatmaps=[
                    {"interval_s": 12.8, "bin_bytes": [0] * 124 + [50_000_000], **WRITE},
                    {"interval_s": 12.8, "bin_bytes": [0] * 123 + [70_000_000, 0], "rank": 1, **WRITE},
                ],
            ),
        ),
        "interval": land(store, "interval", trace(started_min=-200, modules=posix, records=[timed])),
        "partial": land(
            store,
            "partial",
            trace(
                started_min=-199,
                modules=posix | {"DXT_POSIX": {"outcome": "partial", "is_partial": True}},
                records=[timed],
                requests=start[:1],
            ),
        ),
        "idle": land(store, "idle", trace(started_min=-198, modules=posix, records=[{"module": "POSIX"}])),
        "undated": land(
            store,
            "undated",
            trace(
                tracer="tmio",
                modules={"MPIIO": {}},
                requests=[
                    {"request_bytes": 3e9, "start_s": 0.0, "end_s": 1600.0, "module": "MPIIO", "direction": "read"},
                    {
                        "request_bytes": 1e9,
                        "start_s": 1500.0,
                        "end_s": 1600.0,
                        "module": "MPIIO",
                        "direction": "read",
                        "is_async": True,
                    },
                ],
            ),
        ),
        "unstated": land(
            store,
            "unstated",
            trace(
                tracer="tmio",
                modules={"MPIIO": {}},
                requests=[
                    {
                        "request_bytes": 8e8,
                        "start_s": 400.0,
                        "end_s": 1200.0,
                        "module": "MPIIO",
                        "direction": "unstated",
                    }
                ],
            ),
        ),
        "unsized": land(
            store,
            "unsized",
            trace(
                tracer="recorder",
                started_min=-196,
                modules={"MPIIO": {}},
                records=[
                    {"module": "MPIIO", "written_bytes": None, "write_count": 2, "read_bytes": 0, "read_count": 0}
                ],
                requests=[
                    {"request_bytes": 5e8, "start_s": 0.0, "end_s": 5.0} | WRITE | {"module": "MPIIO"},
                    {"request_bytes": None, "start_s": 5.0, "end_s": 6.0} | WRITE | {"module": "MPIIO"},
                ],
            ),
        ),
        "unread": land(
            store, "unread", trace(started_min=-197, modules={"POSIX": {"outcome": "unreadable", "reason": "Damaged."}})
        ),
    }


@pytest.fixture(scope="module")
def traced(
    landed_site: Store, found_by_checks: FoundByChecks, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Store, Release, dict[str, str]]:
    """A warehouse with the small site and a trace of each kind, after its night; must not be changed."""
    store = Store(tmp_path_factory.mktemp("traced") / "warehouse")
    shutil.copytree(landed_site.root, store.root)
    ids = mixed_traces(store)
    with pytest.MonkeyPatch.context() as monkeypatch:
        check_here(monkeypatch, found_by_checks)
        return store, run_night(store), ids


@pytest.mark.long
def test_traces_are_matched_counted_sampled_and_classified(traced: tuple[Store, Release, dict[str, str]]) -> None:
    store, release, ids = traced
    names = {trace_id: name for name, trace_id in ids.items()}

    def of(query: str) -> list[tuple[Any, ...]]:
        found = query_release(store, release, query).with_columns(pl.col("trace_id").replace_strict(names))
        return sorted(found.iter_rows())

    assert of("select trace_id, job_match, job_id from trace_jobs where job_match <> 'none'") == [
        ("heatmap", "job_id", "101"),
        ("requests", "job_id", "100"),
    ]
    assert of("select trace_id, module, basis, interval_s, volume_bytes, peak_bytes_per_s from trace_signals") == [
        ("heatmap", "POSIX", "heatmap", 12.8, 120e6, 70e6 / 12.8),
        ("interval", "POSIX", "interval", 1.0, pytest.approx(120e6, rel=1e-12), pytest.approx(120e6 / 195)),
        ("partial", "POSIX", "interval", 1.0, pytest.approx(120e6, rel=1e-12), pytest.approx(120e6 / 195)),
        ("requests", "POSIX", "requests", 1.0, pytest.approx(120e6, rel=1e-12), 1.2e6),
        ("undated", "MPIIO", "requests", 1.0, pytest.approx(1e9, rel=1e-12), 1e7),
        ("undated", "MPIIO", "requests", 1.0, 3e9, pytest.approx(3e9 / 1600)),
        ("unsized", "MPIIO", "requests", 1.0, pytest.approx(5e8), 1e8),
        ("unstated", "MPIIO", "requests", 1.0, 8e8, 1e6),
    ]
    assert of(
        "select subject_id as trace_id, direction, outcome, label from classes "
        "where subject_kind = 'trace' and (direction = 'write' or volume_bytes > 0)"
    ) == [
        ("heatmap", "write", "classified", "END"),
        ("idle", "write", "classified", "NO_USAGE"),
        ("interval", "write", "interval_only", None),
        ("partial", "write", "interval_only", None),
        ("requests", "write", "classified", "START"),
        ("undated", "read", "classified", "OTHER"),
        ("undated", "write", "classified", "NO_USAGE"),
        ("unsized", "write", "unknown_sizes", None),
        ("unstated", "unstated", "classified", "HILL"),
    ]
    assert of("select trace_id, job_id, own_bytes from job_io_sources where source = 'client' and own_bytes > 0") == [
        ("heatmap", "101", 120e6),
        ("interval", ids["interval"], 120e6),
        ("partial", ids["partial"], 120e6),
        ("requests", "100", 120e6),
        ("undated", ids["undated"], 4e9),
        ("unstated", ids["unstated"], 8e8),
    ]
    assert of("select trace_id, direction, own_bytes from job_io_sources where outcome = 'unknown_sizes'") == [
        ("unsized", "write", None)
    ]
    assert of("select trace_id, module, covered_ratio from trace_counters where covered_ratio is not null") == [
        ("heatmap", "HEATMAP", 1.0),
        ("partial", "DXT_POSIX", 0.05),
        ("requests", "DXT_POSIX", 1.0),
    ]


@pytest.mark.long
def test_server_side_rows_are_unaffected_by_traces(traced: tuple[Store, Release, dict[str, str]]) -> None:
    store, release, _ = traced
    found = query_release(
        store, release, "select source, count(*) as n from job_io_sources group by source order by source"
    )
    assert found.rows()[1] == ("server", 8)
    assert query_release(store, release, "select sample_count from applications")["sample_count"].to_list() == [2, 2]


@pytest.mark.slow
def test_inputs_of_a_release_can_be_queried_by_table_name(traced: tuple[Store, Release, dict[str, str]]) -> None:
    store, release, ids = traced
    query = "select trace_id, count(*), sum(request_bytes) from trace_requests group by all order by 3 desc limit 2"
    with open_release(store, release, query) as connection:
        assert connection.sql(query).fetchall() == [(ids["undated"], 2, 4e9), (ids["unstated"], 1, 8e8)]
        with pytest.raises(duckdb.CatalogException):
            connection.sql("from trace_calls")
    with open_release(store, release, "from trace_calls") as connection:
        assert connection.sql("from trace_calls").fetchall() == []


@pytest.mark.slow
def test_input_landed_later_is_not_in_the_release(tmp_path: Path) -> None:
    store = Store(tmp_path / "warehouse")
    ids = mixed_traces(store)
    release = publish(store, "r", {}, inputs=(ids["undated"],))
    found = query_release(store, release, "select distinct trace_id from trace_requests")
    assert found.rows() == [(ids["undated"],)]


@pytest.mark.usefixtures("quick_checks")
@pytest.mark.long
def test_trace_landed_before_its_job_is_matched_when_the_job_lands(landed_site: Store, tmp_path: Any) -> None:
    store = Store(tmp_path / "warehouse")
    trace_id = land(
        store,
        "early",
        trace(started_min=-98, job_id="100", modules={"POSIX": {}}, records=[{"module": "POSIX", "written_bytes": 5}]),
    )
    first = run_night(store)
    assert query_release(store, first, "select job_match, cluster from trace_jobs").rows() == [("none", None)]
    land_files(store, landed_site.root.parent / "site" / "jobs.sacct")
    second = run_night(store)
    assert query_release(store, second, "select trace_id, job_match, job_id from trace_jobs").rows() == [
        (trace_id, "job_id", "100")
    ]
    client = query_release(store, second, "select distinct job_id, cluster from job_io_sources where source = 'client'")
    assert client.rows() == [("100", "default")]
