"""Traces on the page of a run: compact JSON, valid shades, and names as texts."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime

import numpy as np
import polars as pl

from iosig.reports.site.packing import unpack_document
from iosig.reports.site.runs import RunFrames, hours
from iosig.reports.site.traces import build_trace_findings
from iosig.transforms.findings.finding import apply_rules
from iosig.transforms.findings.rank_times import RankTimes
from iosig.transforms.findings.thresholds import Thresholds
from tests.transforms.findings.made_traces import COUNTERS, counter_row, facts, rows

NOON = datetime(2026, 3, 3, 12, tzinfo=UTC)
EVIL = "</script><script>alert(1)</script>"
RUN = {"cluster": EVIL, "job_id": '7"8', "started_at": NOON}


def told() -> pl.DataFrame:
    jobs = pl.DataFrame(
        [RUN | {"trace_id": name, "tracer": EVIL, "process_count": 2, "duration_s": 9.0} for name in ("0", "1")]
    )
    findings = apply_rules(facts(read_small_count=5000, read_count=5000, read_time_ratio=0.3), Thresholds())
    layers = rows(COUNTERS, counter_row("POSIX", read_bytes=5)).with_columns(trace_id=pl.lit("0"))
    cells = np.array([[0.0, 10.0], [1e5, 1.0]])
    maps = {"0": [RankTimes("POSIX", "write", "heatmap", cells, np.array([0, 1, 2]), np.array([0, 0.5, 1.0]))]}
    return build_trace_findings(jobs, findings, layers, maps)


def test_run_has_all_its_traces_with_findings_layers_and_maps() -> None:
    (row,) = told().to_dicts()
    first, second = json.loads(row["traces"])
    assert [one["rule"] for one in first["findings"]] == ["small_requests"]
    assert first["findings"][0]["sentence"].startswith("5,000 of 5,000 reads (100%)")
    assert first["layers"][0]["read_bytes"] == 5
    assert (second["findings"], second["layers"], second["maps"]) == ([], [], [])
    (one,) = first["maps"]
    assert list(base64.b64decode(one["shades"])) == [0, 1, 7, 1]
    assert (one["time_bytes"], one["rank_bytes"], one["step_s"]) == ([1e5, 11.0], [10.0, 1e5], 0.5)


def test_hour_contains_traces_with_their_runs() -> None:
    runs = pl.DataFrame([RUN | {"state": EVIL}, RUN | {"job_id": "untraced", "state": "FAILED"}])
    io = pl.DataFrame([RUN | {"filesystem": "a", "direction": "read"}])
    (content,) = hours(RunFrames(runs, io, told()))
    own, other = unpack_document(content.data)
    assert (own["state"], len(own["io"]), len(own["traces"])) == (EVIL, 1, 2)
    assert own["traces"][0]["tracer"] == EVIL
    assert "traces" not in other
    (bare,) = hours(RunFrames(runs, io))
    assert [row["job_id"] for row in unpack_document(bare.data)] == ['7"8', "untraced"]
