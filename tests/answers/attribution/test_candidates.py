"""Candidates for unattributed bytes group runs by application."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import polars as pl
import pytest

from iosig.answers.attribution.candidates import TrafficContext, estimate_run_bytes
from iosig.warehouse.contracts.application_ids import make_application_id

_START = datetime(2026, 3, 3, 10, tzinfo=UTC)
_WINDOW = _START, _START + timedelta(minutes=30)


def likely_bytes(*applications: tuple[str, str], machines: tuple[str, str] = ("titan", "titan")) -> list[float]:
    """Return the likely bytes of two runs; only the first was active during all writes."""
    named = zip(machines, applications, strict=True)
    minutes = pl.Series([_START + timedelta(minutes=minute) for minute in range(1, 31)])
    ticks = pl.DataFrame(
        {
            "polled_at": minutes,
            "interval_s": 60.0,
            "read_bytes": 0,
            "written_bytes": [6_000_000] * 10 + [0] * 20,
        }
    )
    users, names = zip(*applications, strict=True)
    there = pl.DataFrame(
        {
            "cluster": "",
            "job_id": ["1", "2"],
            "started_at": [_START, _START + timedelta(minutes=8)],
            "ended_at": [_START + timedelta(minutes=10), _START + timedelta(minutes=30)],
            "application_id": [make_application_id(machine, *names, 4) for machine, names in named],
            "user": users,
            "application": names,
            "node_count": 4,
        }
    )
    schema = there.select("cluster", "job_id", "started_at").schema | {
        "direction": pl.String(),
        "minute_at": ticks.schema["polled_at"],
        "attributed_bytes": pl.Float64(),
        "attributed_low_bytes": pl.Float64(),
        "attributed_high_bytes": pl.Float64(),
    }
    found = estimate_run_bytes(TrafficContext(ticks, pl.DataFrame(schema=schema), there), ["write"], _WINDOW)
    return found["likely_bytes"].to_list()


def test_applications_of_two_machines_are_apart() -> None:
    apart = likely_bytes(("a", "b"), ("c", "d"))
    assert likely_bytes(("a", "b"), ("a", "b"), machines=("titan", "smoky")) == pytest.approx(apart)


def test_slashes_in_names_do_not_merge_applications() -> None:
    apart = likely_bytes(("a", "b"), ("c", "d"))
    assert likely_bytes(("a/b", "c"), ("a", "b/c")) == pytest.approx(apart)
    assert likely_bytes(("a", "b"), ("a", "b")) != pytest.approx(apart), "else the test could not fail"
