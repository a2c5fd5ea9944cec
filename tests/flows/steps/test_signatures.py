"""Samples of signatures are read once, and divided into chunks of sample sets."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import polars as pl
import pytest

from iosig.flows.steps import signatures
from iosig.flows.steps.items import StepContext
from iosig.warehouse.contracts import Table, frames
from iosig.warehouse.contracts.samples import EXACT_SAMPLES, SAMPLES, TRACE_SAMPLES
from iosig.warehouse.engine_paths import read_ipc

_BEGAN = datetime(2026, 3, 3, tzinfo=UTC)


def day_of_samples(day: int, count: int) -> pl.DataFrame:
    """Return the samples of a day's runs of three applications, each with different values."""
    started = [_BEGAN + timedelta(days=day, minutes=number) for number in range(count)]
    columns: dict[str, Any] = {
        "ended_on": date(2026, 3, 3) + timedelta(days=day),
        "application_id": [f"ann/app{number % 3}/8" for number in range(count)],
        "cluster": "default",
        "job_id": [f"{day}-{number}" for number in range(count)],
        "started_at": started,
        "filesystem": "fs",
        "direction": "write",
        "grid_started_at": started,
        "interval_s": 2.0,
        "step_count": 2,
        "sample_bytes_per_s": [[100.0 * day + number, 1.0] for number in range(count)],
        "reported_ratios": None,
        "sample_operations_per_s": [[1.0, float(number)] for number in range(count)],
        "volume_operations": None,
    }
    return pl.DataFrame(columns, schema=frames.schema(SAMPLES))


@pytest.mark.parametrize("days_at_a_time", [1, 2, 8])
def test_chunks_hold_samples_in_the_order_of_their_sets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, days_at_a_time: int
) -> None:
    monkeypatch.setattr(signatures, "_BATCH_DAYS", days_at_a_time)
    days = [day_of_samples(day, 7) for day in range(5)]
    paths = [tmp_path / f"{day}.parquet" for day in range(5)]
    for path, day in zip(paths, days, strict=True):
        day.write_parquet(path)
    # a day has counted samples, and a day traced ones
    days_of_source = {date(2026, 3, 3): "jobstats", date(2026, 3, 4): "client"}
    source = pl.col("ended_on").replace_strict(days_of_source, default="server", return_dtype=pl.String)
    every = pl.concat(days).with_columns(duration_s=pl.lit(3.0), source=source, metric=pl.lit("bytes"))
    order = np.random.default_rng(0).permutation(every.height)
    sets = every[order].filter((pl.col("ended_on") != date(2026, 3, 4)) | (pl.int_range(pl.len()) < 20))
    sets = sets.sort("application_id", maintain_order=True)
    dated = {path: date(2026, 3, 3) + timedelta(days=day) for day, path in enumerate(paths)}
    of_table = {SAMPLES: paths[2:], EXACT_SAMPLES: paths[:1], TRACE_SAMPLES: paths[1:2]}
    context = context_of(tmp_path, lambda table: {own: dated[own] for own in of_table[table]})
    for max_sets, chunk_count in ((1, 3), (2, 2), (9, 1)):
        monkeypatch.setattr(signatures, "_CHUNK_SETS", max_sets)
        signatures._gather_samples(context, signatures._in_chunks(sets))
        found = chunks(tmp_path)
        assert len(found) == chunk_count
        columns = ["application_id", "job_id", "interval_s", "sample_bytes_per_s"]
        assert pl.concat(found).select(columns).equals(sets.select(columns))
    signatures._gather_samples(context, signatures._in_chunks(sets[:0]))
    assert chunks(tmp_path) == [], "nothing stays"


def context_of(folder: Path, dated: Callable[[Table], dict[Path, date]]) -> StepContext:
    """Return the context of an item that reads these samples, and writes chunks into a folder."""
    path = folder / "stale" / "*.arrow"
    return cast(StepContext, SimpleNamespace(get_file_days=dated, path=lambda table: path))


def chunks(folder: Path) -> list[pl.DataFrame]:
    """Return the rows of each chunk with their samples, in order."""
    files: dict[str, list[pl.DataFrame]] = {}
    for path in sorted((folder / "stale").iterdir()):
        files.setdefault(path.name.partition("-")[0], []).append(read_ipc(path))
    return [pl.concat(own).sort("place") for _, own in sorted(files.items())]


@pytest.mark.parametrize(("name", "source"), [("exact_samples", "jobstats"), ("trace_samples", "client")])
def test_own_samples_come_with_background_traffic_where_known(
    name: str, source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(signatures, "_BATCH_DAYS", 1)
    exact, shared = [day_of_samples(day, 4) for day in range(2)], day_of_samples(0, 3)
    more = pl.col("sample_bytes_per_s").list.eval(pl.element() + 5.0)
    files = {"samples": [shared.with_columns(more)], name: exact}
    paths: dict[str, dict[Path, date]] = {}
    for table, frames_ in files.items():
        for frame in frames_:
            path = tmp_path / f"{table}-{frame['ended_on'][0]}.parquet"
            frame.write_parquet(path)
            paths.setdefault(table, {})[path] = frame["ended_on"][0]
    context = context_of(tmp_path, lambda table: paths.get(table.name, {}))
    wanted = pl.concat(exact).with_columns(duration_s=pl.lit(3.0), source=pl.lit(source), metric=pl.lit("bytes"))
    signatures._gather_samples(context, signatures._in_chunks(wanted))
    (found,) = chunks(tmp_path)
    others = signatures._others(found.sort("ended_on", "job_id"))
    assert others is not None
    assert others.tolist() == pytest.approx([5.0] * 6 + [np.nan] * 10, nan_ok=True)
    signatures._gather_samples(context, signatures._in_chunks(wanted[4:]))
    (alone,) = chunks(tmp_path)
    assert signatures._others(alone) is None


def test_sets_of_operations_have_operations(tmp_path: Path) -> None:
    samples, path = day_of_samples(0, 4), tmp_path / "0.parquet"
    samples.write_parquet(path)
    context = context_of(tmp_path, lambda table: {path: date(2026, 3, 3)} if table == SAMPLES else {})
    every = samples.with_columns(duration_s=pl.lit(3.0), source=pl.lit("server"))
    sets = pl.concat([every.with_columns(metric=pl.lit(metric)) for metric in ("bytes", "operations")])
    signatures._gather_samples(context, signatures._in_chunks(sets))
    (found,) = chunks(tmp_path)
    expected = pl.concat([samples["sample_bytes_per_s"], samples["sample_operations_per_s"]])
    assert found["sample_bytes_per_s"].to_list() == expected.to_list()
