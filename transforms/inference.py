"""Classes and periods of runs, inferred from the signatures of their applications.

Where only the traffic of all jobs was measured, it does not show when a run moved its own bytes. Its application's
signature does: a class inferred from it is right three times as often as that of the traffic (`iosig study
population`). A run that took longer than its signature is assumed to be slower everywhere alike, so its period scales
with its duration. One that took much less was stopped, and one that took much longer did more: its period is that of
the signature.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from iosig.transforms import classes
from iosig.transforms.arrays import Ints, Reals, offsets_of
from iosig.transforms.classes import ClassParams

#: a run of which a smaller share of the signature is found in the traffic moved nothing, where at least
#: `_USUALLY_FOUND` of its application's runs are found: else bursts are too small to be missed (both are ours)
_MIN_FOUND_RATIO, _USUALLY_FOUND = 0.1, 0.5
_SUBJECT = ["application_id", "filesystem", "direction"]
#: a run that is longer than its signature by more did more, at the usual period: on 54 simulated sites, of 8 such
#: periods all were the signature's; of 290 periods of runs that were longer by less, 92 % scaled with the duration
_MAX_SLOWDOWN = 1.3


def idle_runs(runs: pl.DataFrame) -> pl.Series:
    """Mark runs whose signature is absent from the traffic although those of most runs of the application are there.

    runs: as of `inferred_classes`.
    """
    is_found = pl.col("explained_bytes") >= _MIN_FOUND_RATIO * pl.col("signature_bytes")
    is_usual = is_found.mean().over(_SUBJECT) >= _USUALLY_FOUND
    return runs.select((~is_found & is_usual).fill_null(value=False)).to_series()


def inferred_classes(runs: pl.DataFrame, bursts: pl.DataFrame, params: ClassParams | None = None) -> pl.DataFrame:
    """Return the class of each run that does what its application's signature does, in the columns of `classify`.

    runs: application_id, filesystem, direction, duration_s, node_count, alone_s (how long the signature lasts),
    signature_bytes, and explained_bytes (what of it was found in the traffic, NULL where this was not analyzed).
    bursts: of signatures, in order of time: application_id, filesystem, direction, started_s, ended_s, volume_bytes.
    """
    numbered = runs.with_row_index("run")
    placed = numbered.select("run", *_SUBJECT).join(bursts, on=_SUBJECT, how="inner", maintain_order="left")
    sections = classes.burst_sections(
        _reals(placed["started_s"]),
        _reals(placed["ended_s"]),
        np.where(idle_runs(runs).to_numpy()[_places(placed["run"])], 0.0, _reals(placed["volume_bytes"])),
        offsets_of(np.bincount(_places(placed["run"]), minlength=runs.height)),
        _reals(runs["alone_s"]),
        _reals(runs["duration_s"]),
    )
    return classes.classify(sections, _reals(runs["node_count"]), params)


def inferred_periods(runs: pl.DataFrame) -> pl.DataFrame:
    """Return runs with the period of their application's signature, on the run's own clock.

    runs: as of `inferred_classes`, and outcome, period_s, frequency_hz, period_error_s, burst_width_s, window_start_s,
    window_end_s, confidence and false_alarm_probability of the signature's period. A stopped run that had no time for
    two cycles is `too_short`, and one whose signature is absent from the traffic has `no_io`.
    """
    pace = classes.pace(_reals(runs["alone_s"]), _reals(runs["duration_s"]))
    slowdown = pl.Series(np.where(pace > _MAX_SLOWDOWN, 1.0, pace))
    cycle, window = ("period_s", "period_error_s", "burst_width_s"), ("window_start_s", "window_end_s")
    scaled = runs.with_columns(
        pl.col(cycle) * slowdown, pl.col(window) * pl.Series(pace), frequency_hz=pl.col("frequency_hz") / slowdown
    ).with_columns(pl.min_horizontal("window_end_s", "duration_s").alias("window_end_s"))
    has_cycles = 2 * pl.col("period_s") <= pl.col("window_end_s") - pl.col("window_start_s")
    outcome = (
        pl.when(idle_runs(runs))
        .then(pl.lit("no_io"))
        .when((pl.col("outcome") == "periodic") & ~has_cycles)
        .then(pl.lit("too_short"))
        .otherwise("outcome")
    )
    values = (*cycle, *window, "frequency_hz", "confidence", "false_alarm_probability")
    return scaled.with_columns(outcome=outcome).with_columns(
        pl.when(pl.col("outcome") == "periodic").then(pl.col(values))
    )


def _reals(column: pl.Series) -> Reals:
    """Return a column as an array; NULL becomes NaN."""
    values: Reals = column.cast(pl.Float64).fill_null(np.nan).to_numpy()
    return values


def _places(column: pl.Series) -> Ints:
    places: Ints = column.cast(pl.Int64).to_numpy()
    return places
