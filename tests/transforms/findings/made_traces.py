"""Traced runs of a few rows with known facts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import polars as pl

from iosig.transforms.findings.facts import TraceFrames, compute_facts
from iosig.transforms.findings.thresholds import Thresholds

JOBS = {"trace_id": pl.String, "process_count": pl.Int64, "duration_s": pl.Float64, "tracer": pl.String}
_INTS = (
    "record_count", "file_count", "read_bytes", "written_bytes", "open_count", "read_count", "write_count",
    "seek_count", "stat_count", "sync_count",
)  # fmt: skip
_REALS = ("read_time_s", "write_time_s", "metadata_time_s")
COUNTERS = (
    {"trace_id": pl.String, "module": pl.String, "outcome": pl.String, "is_partial": pl.Boolean}
    | {"is_counted": pl.Boolean, "counters": pl.String}
    | dict.fromkeys(_INTS, pl.Int64)
    | dict.fromkeys(_REALS, pl.Float64)
)
RECORDS = (
    {"trace_id": pl.String, "module": pl.String, "file_number": pl.Int64, "rank": pl.Int64}
    | dict.fromkeys(("read_bytes", "written_bytes", "read_extent_bytes", "written_extent_bytes"), pl.Int64)
    | dict.fromkeys(("open_count", "read_count", "write_count", "stat_count"), pl.Int64)
    | dict.fromkeys((*_REALS, "fastest_time_s", "slowest_time_s"), pl.Float64)
)
FILES = {"trace_id": pl.String, "file_number": pl.Int64, "stripe_bytes": pl.Int64, "osts": pl.List(pl.Int64)}
REQUESTS = {
    "trace_id": pl.String, "module": pl.String, "rank": pl.Int64, "host": pl.String, "file_number": pl.Int64,
    "direction": pl.String, "offset_bytes": pl.Int64, "request_bytes": pl.Float64, "start_s": pl.Float64,
    "end_s": pl.Float64,
}  # fmt: skip
HEATMAPS = {
    "trace_id": pl.String, "module": pl.String, "rank": pl.Int64, "direction": pl.String, "interval_s": pl.Float64,
    "step_count": pl.Int64, "bin_bytes": pl.List(pl.Int64),
}  # fmt: skip


def rows(schema: Mapping[str, Any], *told: Mapping[str, Any]) -> pl.DataFrame:
    """Return rows of a trace `t`; unspecified columns are NULL."""
    return pl.DataFrame([{"trace_id": "t", **row} for row in told], schema=dict(schema))


def jobs(process_count: int | None = 4, duration_s: float | None = 100.0) -> pl.DataFrame:
    return rows(JOBS, {"process_count": process_count, "duration_s": duration_s, "tracer": "darshan"})


def counter_row(module: str, told: Mapping[str, float] | None = None, **more: Any) -> dict[str, Any]:
    """Return a row of a complete module with counted bytes."""
    sound = {"module": module, "outcome": "sound", "is_partial": False, "is_counted": True}
    return sound | {"counters": None if told is None else json.dumps(told)} | more


def facts(**told: Any) -> pl.DataFrame:
    """Return the facts of a run; all others are unknown."""
    return many_facts([told])


def many_facts(told: list[dict[str, Any]]) -> pl.DataFrame:
    """Return the facts of several runs, with numbers as ids; all other facts are unknown."""
    none = compute_facts(TraceFrames(jobs(), rows(COUNTERS)), Thresholds())
    known = [none.row(0, named=True) | one | {"trace_id": str(number)} for number, one in enumerate(told)]
    schema = {
        name: pl.Float64 if dtype.is_integer() else dtype for name, dtype in none.schema.items() if dtype != pl.Null
    }
    return pl.DataFrame(known, schema_overrides=schema, infer_schema_length=None)
