"""Infer the class and period of jobs from traffic or from signatures, and compute the truth; each method is a way.

Classes are those of PEARC'18 (White et al., DOI 10.1145/3219104.3219121, Algorithm 1); periods are found by the nightly
run's default method, with its settings for each source.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from iosig.estimates.periods import get_params
from iosig.settings.model import Settings
from iosig.studies.attribution.ways import attribute_traffic, select_known_jobs
from iosig.studies.sites import MINUTE_S, SiteSignatures, SiteTraffic, Transfers, extract_samples, find_run_steps
from iosig.transforms import classes, inference
from iosig.transforms.arrays import Ints, Ragged, Reals, offsets_of
from iosig.transforms.periods import search
from iosig.transforms.periods.search import PeriodParams

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from iosig.transforms.signatures.signature import Signature


@dataclass(frozen=True, slots=True)
class Estimates:
    """Inferred class and period per job.

    Columns: job, label (NULL: none), period_s (NULL: none, or not estimated).
    """

    rows: pl.DataFrame

    @classmethod
    def from_columns(cls, job: Ints, label: pl.Series, period_s: Reals | None = None) -> Estimates:
        """Build the rows from columns; a NaN period becomes NULL."""
        period_or_nan = np.full(len(job), np.nan) if period_s is None else period_s
        period = pl.Series(period_or_nan, dtype=pl.Float64).fill_nan(None)
        return cls(pl.DataFrame({"job": job, "label": label, "period_s": period}))


def compute_truth(traffic: SiteTraffic, moved: Transfers) -> Estimates:
    """Compute class and period from each run's own bytes, as with per-job counters.

    moved: the transfers of the site's jobs.
    """
    job = np.arange(len(traffic.logged.start_s))
    sections = classes.interval_sections(
        moved.begun_s,
        moved.end_s,
        moved.volume_bytes,
        offsets_of(np.bincount(moved.job, minlength=len(job))),
        traffic.logged.start_s,
        traffic.logged.end_s,
    )
    first, after = find_run_steps(traffic, job)
    # a run that ends before the first poll after its start has one step
    counts = np.maximum(after - first, 1)
    samples = Ragged(moved.sum_in_steps(first, counts, traffic.interval_s) / traffic.interval_s, offsets_of(counts))
    settings = Settings().periods
    params = get_params(settings, settings.server_methods)
    start_s = first * traffic.interval_s - traffic.logged.start_s
    return Estimates.from_columns(
        job, _classify(traffic, job, sections), _find_periods(samples, traffic.interval_s, start_s, params)
    )


def classify_traffic(traffic: SiteTraffic, signatures: SiteSignatures) -> Estimates:
    """Compute class and period from the total traffic during each run.

    The nightly run does not publish this result, since it describes the file system rather than the run.
    """
    job = np.arange(len(traffic.logged.start_s))
    samples, start_s = extract_samples(traffic, job)
    started, ended = traffic.logged.start_s, traffic.logged.end_s
    intervals = np.full(len(job), traffic.interval_s)
    sections = classes.grid_sections(samples.values, samples.offsets, start_s, intervals, started, ended)
    settings = Settings().periods
    # the samples cover only the run, so the slow search over windows is not needed
    params = get_params(settings.model_copy(update={"window_levels": 0}), settings.server_methods)
    return Estimates.from_columns(
        job, _classify(traffic, job, sections), _find_periods(samples, traffic.interval_s, start_s - started, params)
    )


def infer_from_signature(traffic: SiteTraffic, signatures: SiteSignatures) -> Estimates:
    """Infer class and period from the application's signature, as the nightly run does, for jobs that have one."""
    job = np.flatnonzero(select_known_jobs(traffic.logged, signatures))
    application = traffic.logged.application[job]
    by_application = {number: signatures.get(number) for number in np.unique(application).tolist()}
    signature_rows = pl.DataFrame(
        {
            "application_id": pl.Series(list(by_application), dtype=pl.Int64),
            "alone_s": pl.Series([signature.duration_s for signature in by_application.values()], dtype=pl.Float64),
            "signature_bytes": pl.Series(
                [float(signature.bytes_per_s.sum()) for signature in by_application.values()], dtype=pl.Float64
            ),
            **_find_signature_periods(list(by_application.values())),
        }
    )
    runs = (
        pl.DataFrame(
            {
                "application_id": application,
                "duration_s": (traffic.logged.end_s - traffic.logged.start_s)[job],
                "node_count": traffic.logged.node_count[job],
                "attributed_bytes": attribute_traffic(traffic, signatures)[job].sum(axis=1),
            }
        )
        .with_columns(_SOMEWHERE)
        .join(signature_rows, on="application_id", how="left", maintain_order="left")
    )
    labels = inference.infer_classes(runs, _collect_bursts(by_application))["label"]
    period_s = inference.infer_periods(runs)["period_s"].fill_null(np.nan).to_numpy()
    return Estimates.from_columns(job, labels, period_s)


#: placeholder columns, since each site has one file system and one direction is processed at a time
_SOMEWHERE = pl.lit("").alias("filesystem"), pl.lit("").alias("direction")


def _collect_bursts(signatures: Mapping[int, Signature]) -> pl.DataFrame:
    """Return the bursts of the applications' signatures, in order."""
    names = ("start_s", "end_s", "volume_bytes")
    schema = {"application_id": pl.Int64} | dict.fromkeys(names, pl.Float64)
    parts = [
        pl.DataFrame({name: getattr(signature.bursts, name) for name in names}).with_columns(
            application_id=pl.lit(place, pl.Int64)
        )
        for place, signature in signatures.items()
    ]
    return pl.concat([pl.DataFrame(schema=schema), *(part.select(*schema) for part in parts)]).with_columns(_SOMEWHERE)


def _find_signature_periods(signatures: Sequence[Signature]) -> dict[str, pl.Series]:
    """Find the period of each signature; returns columns of `iosig.transforms.inference.infer_periods`."""
    curves = [signature.bytes_per_s for signature in signatures]
    samples = Ragged(np.concatenate([np.zeros(0), *curves]), offsets_of([len(curve) for curve in curves]))
    settings = Settings().periods
    params = get_params(settings, settings.server_methods)
    (answer,) = search.find_periods(samples, np.ones(len(signatures)), np.zeros(len(signatures)), params)
    detections = answer.detections
    numbers = {
        "period_s": detections.period_s,
        "frequency_hz": detections.frequency_hz,
        "period_error_s": detections.details_or_nan.period_error_s,
        "burst_width_s": answer.burst_width_s,
        "window_start_s": detections.window_start_s,
        "window_end_s": detections.window_end_s,
        "confidence": detections.confidence,
        "false_alarm_probability": detections.false_alarm_probability,
    }
    columns = {name: pl.Series(values, dtype=pl.Float64).fill_nan(None) for name, values in numbers.items()}
    return columns | {"outcome": pl.Series(detections.outcome.tolist(), dtype=pl.String)}


def classify_attribution(traffic: SiteTraffic, signatures: SiteSignatures) -> Estimates:
    """Compute classes from the attributed bytes per minute, for jobs with a signature."""
    job = np.flatnonzero(select_known_jobs(traffic.logged, signatures))
    attributed_bytes = attribute_traffic(traffic, signatures)[job]
    started, ended = traffic.logged.start_s[job], traffic.logged.end_s[job]
    row, minute = np.nonzero(attributed_bytes)
    # a run's bytes lie within the run: clip its first and last minute
    left = np.maximum(minute * MINUTE_S, started[row])
    right = np.minimum((minute + 1) * MINUTE_S, ended[row])
    offsets = offsets_of(np.bincount(row, minlength=len(job)))
    sections = classes.interval_sections(left, right, attributed_bytes[row, minute], offsets, started, ended)
    return Estimates.from_columns(job, _classify(traffic, job, sections))


#: description and implementation of each way
WAYS: dict[str, tuple[str, Callable[[SiteTraffic, SiteSignatures], Estimates]]] = {
    "traffic": ("all traffic during the run", classify_traffic),
    "signature": (
        "inferred from the application's signature, scaled to the run's duration; none if not in the traffic",
        infer_from_signature,
    ),
    "attribution": ("the attributed bytes of each minute", classify_attribution),
}


def _classify(traffic: SiteTraffic, job: Ints, sections: classes.Sections) -> pl.Series:
    """Return the class of each job, assuming complete measurements; NULL for jobs that are too short."""
    return classes.classify(classes.assume_complete(sections), traffic.logged.node_count[job])["label"]


def _find_periods(samples: Ragged, interval_s: float, start_s: Reals, params: PeriodParams) -> Reals:
    """Return the period of each signal [s]; NaN if none."""
    (result,) = search.find_periods(samples, np.full(len(start_s), 1.0 / interval_s), start_s, params)
    return result.detections.period_s
