"""Encode the findings, layers and heat maps of traced runs as data for the pages of these runs."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from iosig.reports.findings import fill_template, levels
from iosig.transforms.arrays import Reals
from iosig.transforms.findings.rank_times import RankTimes

_RUN = ("cluster", "job_id", "started_at")
_LAYER = (
    "module", "read_bytes", "written_bytes", "read_count", "write_count", "open_count", "stat_count", "read_time_s",
    "write_time_s", "metadata_time_s",
)  # fmt: skip
_DIGITS = 3


def build_trace_findings(
    jobs: pl.DataFrame,
    findings: pl.DataFrame,
    layers: pl.DataFrame,
    maps: Mapping[str, Sequence[RankTimes]],
) -> pl.DataFrame:
    """Return runs (cluster, job_id, started_at) with the findings of their traces as one JSON list each.

    jobs: one row per trace, with its run, tracer, process_count and duration_s. findings: rows of `apply_rules`.
    layers: modules with calls or bytes, with trace_id. maps: heat maps (rank by time), keyed by trace_id.
    """
    findings_by_trace = _by_trace(findings.filter(outcome="found"))
    modules = _by_trace(layers)
    documents = [
        json.dumps(
            {
                **{name: job[name] for name in ("tracer", "process_count", "duration_s")},
                "findings": list(_findings(findings_by_trace.get(job["trace_id"]))),
                "layers": _rows(modules.get(job["trace_id"]), _LAYER),
                "maps": [_map(rank_times) for rank_times in maps.get(job["trace_id"], ())],
            },
            separators=(",", ":"),
        )
        for job in jobs.to_dicts()
    ]
    return (
        jobs.select(*_RUN, told=pl.Series(documents, dtype=pl.String))
        .group_by(_RUN, maintain_order=True)
        .agg(traces=pl.concat_str(pl.lit("["), pl.col("told").str.join(","), pl.lit("]")))
    )


def _by_trace(rows: pl.DataFrame) -> dict[str, pl.DataFrame]:
    parts = rows.partition_by("trace_id", as_dict=True, maintain_order=True) if rows.height else {}
    return {str(trace_id): part for (trace_id,), part in parts.items()}


def _rows(frame: pl.DataFrame | None, names: Sequence[str]) -> list[dict[str, Any]]:
    return [] if frame is None else frame.select(names).to_dicts()


def _findings(frame: pl.DataFrame | None) -> Iterator[dict[str, Any]]:
    for row in _rows(frame, ("severity", "rule", "direction", "impact_ratio", "remedy", "sentence", "evidence")):
        fields = {name: value for name, value in row.items() if name != "evidence"}
        yield fields | {"sentence": fill_template(row["sentence"], row["evidence"])}


def _map(heat_map: RankTimes) -> dict[str, Any]:
    high = float(heat_map.cell_bytes.max())
    shades = levels(heat_map.cell_bytes, high).astype("u1").tobytes()
    return {
        "module": heat_map.module,
        "direction": heat_map.direction,
        "high_bytes": high,
        "rank_edges": heat_map.rank_edges.tolist(),
        "step_s": float(heat_map.time_edges_s[1]),
        "time_bytes": _round_values(heat_map.time_bytes),
        "rank_bytes": _round_values(heat_map.rank_bytes),
        "shades": base64.b64encode(shades).decode(),
    }


def _round_values(values: Reals) -> list[float]:
    return [float(f"{value:.{_DIGITS}g}") for value in values.tolist()]
