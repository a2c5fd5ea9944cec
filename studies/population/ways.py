"""Ways of telling when in its run a job does its I/O, and how often: by what flowed, by signatures, and the truth.

Classes are those of PEARC'18 (White et al., DOI 10.1145/3219104.3219121, Algorithm 1), periods those of the night's
default method, with the settings that it has for each source.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from iosig.estimates.periods import params_of
from iosig.settings.model import Settings
from iosig.studies.attribution.ways import attribution, known_jobs
from iosig.studies.sites import MINUTE_S, Known, Seen, Transfers, cut, steps_of
from iosig.transforms import classes, inference
from iosig.transforms.arrays import Ints, Ragged, Reals, offsets_of
from iosig.transforms.periods import search
from iosig.transforms.periods.search import PeriodParams

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from iosig.transforms.signatures.signature import Signature


@dataclass(frozen=True, slots=True)
class Told:
    """What is told of some of a site's jobs: a row each. job, label (NULL where it has none), period_s (NULL: none).

    period_s is NULL, too, where a way does not tell of periods.
    """

    rows: pl.DataFrame

    @classmethod
    def of(cls, job: Ints, label: pl.Series, period_s: Reals | None = None) -> Told:
        """Put columns together; a period of NaN is none."""
        known = np.full(len(job), np.nan) if period_s is None else period_s
        period = pl.Series(known, dtype=pl.Float64).fill_nan(None)
        return cls(pl.DataFrame({"job": job, "label": label, "period_s": period}))


def truth(seen: Seen, moved: Transfers) -> Told:
    """Tell of each run's own bytes, as servers that count by job would.

    moved: the transfers of the site's jobs.
    """
    every = np.arange(len(seen.logged.start_s))
    sections = classes.interval_sections(
        moved.begun_s,
        moved.end_s,
        moved.volume_bytes,
        offsets_of(np.bincount(moved.job, minlength=len(every))),
        seen.logged.start_s,
        seen.logged.end_s,
    )
    first, after = steps_of(seen, every)
    # a run that is over before the first poll after its start has one step
    counts = np.maximum(after - first, 1)
    samples = Ragged(moved.on_steps(first, counts, seen.interval_s) / seen.interval_s, offsets_of(counts))
    settings = Settings().periods
    params = params_of(settings, settings.server_methods)
    start_s = first * seen.interval_s - seen.logged.start_s
    return Told.of(every, _labels(seen, every, sections), _periods(samples, seen.interval_s, start_s, params))


def by_traffic(seen: Seen, known: Known) -> Told:
    """Tell of all that flowed while a run was there: no release does, for that is the file system's answer."""
    every = np.arange(len(seen.logged.start_s))
    samples, start_s = cut(seen, every)
    started, ended = seen.logged.start_s, seen.logged.end_s
    intervals = np.full(len(every), seen.interval_s)
    sections = classes.grid_sections(samples.values, samples.offsets, start_s, intervals, started, ended)
    settings = Settings().periods
    # cut to the run's own time already: windows would take most of the time
    params = params_of(settings.model_copy(update={"window_levels": 0}), settings.server_methods)
    return Told.of(every, _labels(seen, every, sections), _periods(samples, seen.interval_s, start_s - started, params))


def by_signature(seen: Seen, known: Known) -> Told:
    """Infer the class and period of each run from its application's signature, as the night does; of those with one."""
    job = np.flatnonzero(known_jobs(seen.logged, known))
    application = seen.logged.application[job]
    own = {one: known.of(one) for one in np.unique(application).tolist()}
    signatures = pl.DataFrame(
        {
            "application_id": pl.Series(list(own), dtype=pl.Int64),
            "alone_s": pl.Series([one.duration_s for one in own.values()], dtype=pl.Float64),
            "signature_bytes": pl.Series([float(one.bytes_per_s.sum()) for one in own.values()], dtype=pl.Float64),
            **_signature_periods(list(own.values())),
        }
    )
    runs = (
        pl.DataFrame(
            {
                "application_id": application,
                "duration_s": (seen.logged.end_s - seen.logged.start_s)[job],
                "node_count": seen.logged.node_count[job],
                "attributed_bytes": attribution(seen, known)[job].sum(axis=1),
            }
        )
        .with_columns(_SOMEWHERE)
        .join(signatures, on="application_id", how="left", maintain_order="left")
    )
    labels = inference.infer_classes(runs, _bursts(own))["label"]
    period_s = inference.infer_periods(runs)["period_s"].fill_null(np.nan).to_numpy()
    return Told.of(job, labels, period_s)


#: one file system, one direction
_SOMEWHERE = pl.lit("").alias("filesystem"), pl.lit("").alias("direction")


def _bursts(own: Mapping[int, Signature]) -> pl.DataFrame:
    """Return the bursts of applications' signatures, in order."""
    names = ("start_s", "end_s", "volume_bytes")
    schema = {"application_id": pl.Int64} | dict.fromkeys(names, pl.Float64)
    parts = [
        pl.DataFrame({name: getattr(one.bursts, name) for name in names}).with_columns(
            application_id=pl.lit(place, pl.Int64)
        )
        for place, one in own.items()
    ]
    return pl.concat([pl.DataFrame(schema=schema), *(part.select(*schema) for part in parts)]).with_columns(_SOMEWHERE)


def _signature_periods(own: Sequence[Signature]) -> dict[str, pl.Series]:
    """Return the period of each signature, as columns of `iosig.transforms.inference.infer_periods`."""
    curves = [one.bytes_per_s for one in own]
    samples = Ragged(np.concatenate([np.zeros(0), *curves]), offsets_of([len(curve) for curve in curves]))
    settings = Settings().periods
    params = params_of(settings, settings.server_methods)
    (answer,) = search.find_periods(samples, np.ones(len(own)), np.zeros(len(own)), params)
    found = answer.detections
    numbers = {
        "period_s": found.period_s,
        "frequency_hz": found.frequency_hz,
        "period_error_s": found.details_or_nan.period_error_s,
        "burst_width_s": answer.burst_width_s,
        "window_start_s": found.window_start_s,
        "window_end_s": found.window_end_s,
        "confidence": found.confidence,
        "false_alarm_probability": found.false_alarm_probability,
    }
    columns = {name: pl.Series(values, dtype=pl.Float64).fill_nan(None) for name, values in numbers.items()}
    return columns | {"outcome": pl.Series(found.outcome.tolist(), dtype=pl.String)}


def by_attribution(seen: Seen, known: Known) -> Told:
    """Tell of what signatures explain of the traffic, by minute; of the runs of applications with one."""
    job = np.flatnonzero(known_jobs(seen.logged, known))
    given = attribution(seen, known)[job]
    started, ended = seen.logged.start_s[job], seen.logged.end_s[job]
    row, minute = np.nonzero(given)
    # a run's bytes are its own: those of a minute in which it begins came after that
    left = np.maximum(minute * MINUTE_S, started[row])
    right = np.minimum((minute + 1) * MINUTE_S, ended[row])
    offsets = offsets_of(np.bincount(row, minlength=len(job)))
    sections = classes.interval_sections(left, right, given[row, minute], offsets, started, ended)
    return Told.of(job, _labels(seen, job, sections))


#: of each way what it does, in words, and how
WAYS: dict[str, tuple[str, Callable[[Seen, Known], Told]]] = {
    "traffic": ("all traffic during the run", by_traffic),
    "signature": (
        "inferred from the application's signature, scaled to the run's duration; none if not in the traffic",
        by_signature,
    ),
    "attribution": ("the attributed bytes of each minute", by_attribution),
}


def _labels(seen: Seen, job: Ints, sections: classes.Sections) -> pl.Series:
    """Return the class of some jobs, of all of whose time everything is known; NULL of those that are too short."""
    return classes.classify(classes.assume_complete(sections), seen.logged.node_count[job])["label"]


def _periods(samples: Ragged, interval_s: float, start_s: Reals, params: PeriodParams) -> Reals:
    """Return the period of each signal [s]; NaN where it has none."""
    (found,) = search.find_periods(samples, np.full(len(start_s), 1.0 / interval_s), start_s, params)
    return found.detections.period_s
