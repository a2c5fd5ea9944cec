"""Infer classes and periods of runs from the signatures of their applications.

If only the traffic of all jobs was measured, it does not show when a run moved its own bytes. The signature of its
application does: a class inferred from the signature is correct three times as often as one computed from the traffic
(`iosig study population`). A run that took longer than its signature is assumed to be slowed evenly, so its period
scales with its duration. A run that took much less time was stopped, and a run that took much more did more work; both
have the period of the signature.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from iosig.transforms import classes
from iosig.transforms.arrays import Ints, Reals, offsets_of
from iosig.transforms.classes import ClassParams

#: A run is idle if less than the first fraction of its signature is found in the traffic. If less than the second
#: fraction of an application's runs is found, its bursts are too small to be visible, and no run counts as idle.
_MIN_FOUND_RATIO, _MIN_VISIBLE_RATIO = 0.1, 0.5
_SUBJECT = ["application_id", "filesystem", "direction"]
#: maximum slowdown; a longer run did more work at the usual period (on 54 simulated sites, all 8 periods above it were
#: those of the signature; of 290 periods below it, 92 % scaled with the duration)
_MAX_SLOWDOWN = 1.3


def find_idle_runs(runs: pl.DataFrame) -> pl.Series:
    """Mark runs without their signature in the traffic, if the signature is present for most runs of the application.

    Parameters
    ----------
    runs : pl.DataFrame
        Runs, as for `infer_classes`.

    Returns
    -------
    pl.Series
        Booleans.

    """
    is_found = pl.col("attributed_bytes") >= _MIN_FOUND_RATIO * pl.col("signature_bytes")
    is_visible = is_found.mean().over(_SUBJECT) >= _MIN_VISIBLE_RATIO
    return runs.select((~is_found & is_visible).fill_null(value=False)).to_series()


def infer_classes(runs: pl.DataFrame, bursts: pl.DataFrame, params: ClassParams | None = None) -> pl.DataFrame:
    """Infer the class of each run from the signature of its application.

    Parameters
    ----------
    runs : pl.DataFrame
        Columns application_id, filesystem, direction, duration_s, node_count, alone_s (duration of the signature),
        signature_bytes, and attributed_bytes (the part found in the traffic; NULL if not analyzed).
    bursts : pl.DataFrame
        Bursts of the signatures in chronological order: application_id, filesystem, direction, start_s, end_s,
        volume_bytes.
    params : ClassParams, optional
        Thresholds of the classifier.

    Returns
    -------
    pl.DataFrame
        The columns of `classify`; one row per run, in order.

    """
    numbered = runs.with_row_index("run")
    placed = numbered.select("run", *_SUBJECT).join(bursts, on=_SUBJECT, how="inner", maintain_order="left")
    sections = classes.burst_sections(
        _reals(placed["start_s"]),
        _reals(placed["end_s"]),
        np.where(find_idle_runs(runs).to_numpy()[_indices(placed["run"])], 0.0, _reals(placed["volume_bytes"])),
        offsets_of(np.bincount(_indices(placed["run"]), minlength=runs.height)),
        _reals(runs["alone_s"]),
        _reals(runs["duration_s"]),
    )
    return classes.classify(sections, _reals(runs["node_count"]), params)


def infer_periods(runs: pl.DataFrame) -> pl.DataFrame:
    """Infer the period of each run from the period of its application's signature.

    Parameters
    ----------
    runs : pl.DataFrame
        Runs as for `infer_classes`, with outcome, period_s, frequency_hz, period_error_s, burst_width_s,
        window_start_s, window_end_s, confidence and false_alarm_probability of the signature's period.

    Returns
    -------
    pl.DataFrame
        The runs with these columns on their own clock. The outcome is `too_short` for a stopped run with fewer than two
        cycles, and `no_io` for an idle run.

    """
    slowdowns = classes.compute_slowdowns(_reals(runs["alone_s"]), _reals(runs["duration_s"]))
    slowdown = pl.Series(np.where(slowdowns > _MAX_SLOWDOWN, 1.0, slowdowns))
    cycle, window = ("period_s", "period_error_s", "burst_width_s"), ("window_start_s", "window_end_s")
    scaled = runs.with_columns(
        pl.col(cycle) * slowdown, pl.col(window) * pl.Series(slowdowns), frequency_hz=pl.col("frequency_hz") / slowdown
    ).with_columns(pl.min_horizontal("window_end_s", "duration_s").alias("window_end_s"))
    has_cycles = 2 * pl.col("period_s") <= pl.col("window_end_s") - pl.col("window_start_s")
    outcome = (
        pl.when(find_idle_runs(runs))
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
    """Convert a column to an array; NULL becomes NaN."""
    values: Reals = column.cast(pl.Float64).fill_null(np.nan).to_numpy()
    return values


def _indices(column: pl.Series) -> Ints:
    indices: Ints = column.cast(pl.Int64).to_numpy()
    return indices
