"""Hand-made releases with signatures: applications with bursts, their samples, and the result of each method."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import count
from typing import Any

import numpy as np
import polars as pl

from iosig.estimates.signatures.published import KEY
from iosig.warehouse.contracts import frames, table
from iosig.warehouse.contracts.metrics import Metric
from iosig.warehouse.contracts.signatures import SIGNATURE_BURSTS, SIGNATURE_POINTS, SIGNATURES
from iosig.warehouse.releases import publishing, releases
from iosig.warehouse.releases.releases import Release
from iosig.warehouse.store.store import Store, write_parquet
from tests.sql.given import NOON, filled
from tests.warehouse.releasing import draft

_NUMBER = count()
STEP_S = 2.0


def curve(bursts: Sequence[tuple[int, int, float]], seconds: int = 300) -> np.ndarray:
    """Return a rate per second: bursts between two seconds at a rate, and 0 elsewhere."""
    rates = np.zeros(seconds)
    for started, ended, rate in bursts:
        rates[started:ended] = rate
    return rates


@dataclass(frozen=True)
class Made:
    """The signature of an application by a method; bursts are (first second, last second, bytes per second).

    metric: what the signature counts; with operations, the numbers are operations, and is_default has no effect.
    samples: server-side rates of each run. exact: counted rates of each run, from which the sample set is then made.
    """

    application_id: str = "ana/ior_a/16"
    bursts: tuple[tuple[int, int, float], ...] = ((60, 90, 2e9), (180, 220, 1e9))
    seconds: int = 300
    direction: str = "write"
    filesystem: str = "scratch"
    metric: Metric = "bytes"
    method: str = "robust"
    is_default: bool = True
    outcome: str = "extracted"
    run_count: int = 6
    outlier_job_ids: tuple[str, ...] = ()
    background_bytes_per_s: float | None = 1e8
    band_ratio: float | None = 0.1
    support_ratio: float | None = 1.0
    samples: tuple[np.ndarray, ...] | None = None
    exact: tuple[np.ndarray, ...] | None = None
    told: dict[str, Any] = field(default_factory=dict)

    @property
    def rates(self) -> np.ndarray:
        return curve(self.bursts if self.outcome == "extracted" else (), self.seconds)

    @property
    def key(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in KEY}

    @property
    def jobs(self) -> list[str]:
        # each application has jobs with different ids
        first = 1000 * (sum(self.application_id.encode()) % 900 + 100)
        return [str(first + number) for number in range(self.run_count)]

    @property
    def run_rates(self) -> list[np.ndarray]:
        """Server-side rates of each run."""
        if self.samples is not None:
            return list(self.samples)
        steps = curve(self.bursts, self.seconds).reshape(-1, int(STEP_S)).mean(axis=1)
        return [steps + 1e8 for _ in self.jobs]


def publish(store: Store, name: str, made: Sequence[Made]) -> Release:
    """Publish a release with these signatures."""
    folder = store.builds / f"{name}-{next(_NUMBER)}"
    files = {}
    for known, frame in _frames(made).items():
        contract = table(known)
        path = folder / f"{known}.parquet"
        write_parquet(frame.select(contract.column_names), contract, path)
        day = frame[contract.partition][0] if contract.partition and frame.height else None
        files[known] = {day: path}
    return publishing.publish(store, draft(name, on=releases.current(store)), files)


def _frames(made: Sequence[Made]) -> dict[str, pl.DataFrame]:
    # the first entry of a subject defines its samples
    subjects = {(one.application_id, one.filesystem, one.direction): one for one in reversed(made)}
    runs = [_runs(one, one.run_rates) for one in subjects.values()]
    counted = [_runs(one, one.exact) for one in subjects.values() if one.exact is not None]
    sets = [
        _runs(one, one.run_rates if one.exact is None else one.exact).with_columns(
            source=pl.lit("server" if one.exact is None else "jobstats")
        )
        for one in subjects.values()
    ]
    signatures = {
        SIGNATURES: filled(
            "transforms.signatures", pl.DataFrame([_row(one) for one in made], infer_schema_length=None)
        ),
        SIGNATURE_POINTS: _many("transforms.signature_points", [_points(one) for one in made]),
        SIGNATURE_BURSTS: _many("transforms.signature_bursts", [_bursts(one) for one in made]),
    }
    return (
        {table.name: frames.separate_metrics(rows, table) for table, rows in signatures.items()}
        | {
            "sample_sets": _many(
                "samples.sample_sets", [frame.drop("sample_bytes_per_s", "grid_started_at") for frame in sets]
            ),
            "samples": _many("samples.samples", runs),
        }
        | ({"exact_samples": _many("samples.exact_samples", counted)} if counted else {})
    )


def _many(name: str, parts: list[pl.DataFrame]) -> pl.DataFrame:
    return filled(name, pl.concat([part for part in parts if part.height] or parts[:1], how="vertical_relaxed"))


def _row(one: Made) -> dict[str, Any]:
    is_there = one.outcome == "extracted"
    rates = one.rates
    return (
        one.key
        | {
            "is_default": one.is_default and one.metric == "bytes",
            "outcome": one.outcome,
            "sample_count": one.run_count,
            "used_sample_count": one.run_count - len(one.outlier_job_ids),
            "outlier_job_ids": json.dumps(one.outlier_job_ids),
            "duration_s": float(one.seconds) if is_there else None,
            "burst_count": len(one.bursts) if is_there else None,
            "volume_bytes": float(rates.sum()) if is_there else None,
            "peak_bytes_per_s": float(rates.max()) if is_there else None,
            "background_bytes_per_s": one.background_bytes_per_s,
            "method_parameters": "{}",
        }
        | one.told
    )


def _points(one: Made) -> pl.DataFrame:
    rates = one.rates if one.outcome == "extracted" else np.zeros(0)
    band = [None] * len(rates) if one.band_ratio is None else None
    return pl.DataFrame(
        {
            "offset_s": np.arange(len(rates), dtype=np.float64),
            "bytes_per_s": rates,
            "low_bytes_per_s": band or rates * (1 - (one.band_ratio or 0.0)),
            "high_bytes_per_s": band or rates * (1 + (one.band_ratio or 0.0)),
        },
        schema_overrides={"low_bytes_per_s": pl.Float64, "high_bytes_per_s": pl.Float64},
    ).with_columns(pl.lit(value).alias(name) for name, value in one.key.items())


def _bursts(one: Made) -> pl.DataFrame:
    rows = [
        one.key
        | {
            "burst": number,
            "start_s": float(started),
            "peak_s": (started + ended) / 2,
            "end_s": float(ended),
            "volume_bytes": rate * (ended - started),
            "support_ratio": one.support_ratio,
        }
        for number, (started, ended, rate) in enumerate(one.bursts if one.outcome == "extracted" else ())
    ]
    schema = {**dict.fromkeys(one.key, pl.String), "burst": pl.Int64} | dict.fromkeys(
        ("start_s", "peak_s", "end_s", "volume_bytes", "support_ratio"), pl.Float64
    )
    return pl.DataFrame(rows, schema=schema, orient="row")


def _runs(one: Made, run_rates: Sequence[np.ndarray]) -> pl.DataFrame:
    """Return the rows of each run that `samples`, `exact_samples` and `sample_sets` share, with its rates."""
    rows = [
        {
            "application_id": one.application_id,
            "filesystem": one.filesystem,
            "direction": one.direction,
            "cluster": "titan",
            "job_id": job,
            "started_at": NOON + timedelta(minutes=number),
            "ended_on": NOON.date(),
            "grid_started_at": NOON + timedelta(minutes=number, seconds=-0.5),
            "interval_s": STEP_S,
            "step_count": len(rates),
            "duration_s": STEP_S * len(rates),
            "sample_bytes": float(np.nansum(rates) * STEP_S),
            "missing_ratio": float(np.isnan(rates).mean()),
            "sample_bytes_per_s": [None if np.isnan(rate) else float(rate) for rate in rates],
        }
        for number, (job, rates) in enumerate(zip(one.jobs, run_rates, strict=False))
    ]
    return pl.DataFrame(
        rows,
        infer_schema_length=None,
        schema_overrides={"started_at": pl.Datetime("us", "UTC"), "grid_started_at": pl.Datetime("us", "UTC")},
    )
