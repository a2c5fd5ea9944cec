"""Prepare the evaluations of one run for drawing: ordered by time, with the observed phases, in pixel columns."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from iosig.reports.predictions.state_strips import RunClock, StateSequence, mask_implausible_times, sort_states
from iosig.transforms.arrays import Bools, Ints, Reals

Texts = npt.NDArray[np.str_]

#: numeric columns of `predictions` that are drawn; text columns follow
_NUMBERS = (
    "run_number", "evaluation", "window_start_s", "window_end_s", "period_s", "shortest_period_s", "longest_period_s",
    "probability", "phase_count", "last_phase_start_s", "next_burst_earliest_s", "next_burst_start_s",
    "next_burst_latest_s",
    "change_s",
)  # fmt: skip
_TEXTS = ("outcome", "change", "phase_state", "next_burst_outcome")
_NAMES = ("followed_id", "direction", "window_strategy", "method")
#: number of evaluations, phases or gaps above which the data are aggregated into pixel columns
#: number of these pixel columns
MAX_EXACT_EVALUATIONS, _COLUMNS = 1500, 550


@dataclass(frozen=True, slots=True, eq=False)
class PredictionView:
    """Predictions of one followed input and direction, with the measurements to compare them to.

    predictions: one or more rows of `predictions`; only the last run is drawn, and the figure states the number of
    runs. The remaining fields belong to that run and use its clock, as far as available. time_s, bytes_per_s (n): mean
    throughput from each time to the next, the last one for as long as the one before; NaN where not measured. onset_s,
    end_s (p): phases by ascending onset; without them, onsets are taken from the predictions. graph: the run's phase
    automaton; without it, states are drawn from the time of their first report.
    """

    predictions: pl.DataFrame
    time_s: Reals = field(default_factory=partial(np.empty, 0))
    bytes_per_s: Reals = field(default_factory=partial(np.empty, 0))
    onset_s: Reals = field(default_factory=partial(np.empty, 0))
    end_s: Reals = field(default_factory=partial(np.empty, 0))
    has_utc_clock: bool = False
    graph: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        """Reject predictions of more than one input."""
        frame = self.predictions
        if missing := sorted({*_NUMBERS, *_TEXTS, *_NAMES} - set(frame.columns)):
            raise ValueError(f"predictions lack the columns {', '.join(missing)}")
        if not len(frame) or len(frame.select("followed_id", "direction").unique()) != 1:
            raise ValueError("predictions must be of a single input and direction, and not empty")
        if len(self.time_s) != len(self.bytes_per_s) or len(self.onset_s) != len(self.end_s):
            raise ValueError("times and throughputs, and onsets and ends of phases, must have equal lengths")
        for times in (self.time_s, self.onset_s):
            if not np.isfinite(mask_implausible_times(times)).all() or (np.diff(times) < 0).any():
                raise ValueError("times and onsets must be finite and ascending")


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """The last run's evaluations (n), ordered by time at_s, and its phases; numbers and text by column name.

    onset_s (p): starts of phases; follows (p - 1): whether the next onset certainly belongs to the next phase.
    """

    at_s: Reals
    numbers: dict[str, Reals]
    texts: dict[str, Texts]
    onset_s: Reals
    follows: Bools
    clock: RunClock
    ends_s: tuple[float, float]
    states: StateSequence

    @classmethod
    def from_view(cls, view: PredictionView) -> Run:
        """Extract the last run of the view."""
        frame = view.predictions.filter(pl.col("run_number") == pl.col("run_number").max()).sort("evaluation")
        numbers = {
            name: mask_implausible_times(frame[name].cast(pl.Float64).fill_null(math.nan).to_numpy())
            for name in _NUMBERS
        }
        texts = {name: frame[name].cast(pl.String).fill_null("").to_numpy().astype(str) for name in _TEXTS}
        at = _fill_forward(numbers["window_end_s"])
        numbers["period_s"] = np.where(numbers["period_s"] > 0, numbers["period_s"], np.nan)
        onset, follows = _onsets(view, numbers)
        ends = _ends(view, at, numbers, onset)
        if view.graph and view.graph["nodes"]:
            states = sort_states(view.graph)
        else:
            states = StateSequence(texts["phase_state"].tolist(), [*at.tolist(), ends[1]], [], {})
        return cls(
            at, numbers, texts, onset, follows, RunClock.for_span(*ends, has_utc_clock=view.has_utc_clock), ends, states
        )

    @property
    def has_period(self) -> Bools:
        """Mask of the evaluations (n) with a period."""
        return np.isfinite(self.numbers["period_s"])

    @property
    def gaps_s(self) -> Reals:
        """Time from each onset to the next; NaN if the next onset may not belong to the next phase."""
        return np.where(self.follows, np.diff(self.onset_s), np.nan)

    def came(self) -> tuple[Reals, Reals]:
        """Return the first burst after each evaluation and its distance from the previous burst; NaN if unknown."""
        place = np.searchsorted(self.onset_s, self.at_s, "right")
        onset = np.append(self.onset_s, np.nan)[place]
        gap = np.concatenate([[np.nan], self.gaps_s, [np.nan]])[: len(self.onset_s) + 1][place]
        return np.where(np.isfinite(gap), onset, np.nan), gap


def _fill_forward(values: Reals) -> Reals:
    """Fill missing evaluation times with the preceding one, keeping them ascending."""
    filled = np.maximum.accumulate(np.where(np.isfinite(values), values, -np.inf))
    first = filled[np.isfinite(filled)]
    return np.where(np.isfinite(filled), filled, first[0] if len(first) else 0.0)


def _onsets(view: PredictionView, numbers: dict[str, Reals]) -> tuple[Reals, Bools]:
    if len(view.onset_s):
        return mask_implausible_times(view.onset_s), np.ones(len(view.onset_s) - 1, dtype=bool)
    order = np.flatnonzero(np.isfinite(numbers["last_phase_start_s"]))
    onset, first = np.unique(numbers["last_phase_start_s"][order], return_index=True)
    return onset, np.diff(numbers["phase_count"][order][first]) == 1


def _ends(view: PredictionView, at: Reals, numbers: dict[str, Reals], onset: Reals) -> tuple[float, float]:
    """Return the time range of the figure; a distant next burst does not compress the rest."""
    times_s = np.concatenate([numbers["window_start_s"], view.time_s, onset, at])
    first, last = (
        float(np.nanmin(times_s)),
        float(np.nanmax(np.concatenate([times_s, mask_implausible_times(view.end_s)]))),
    )
    latest_s = numbers["next_burst_latest_s"][-1]
    if math.isfinite(latest_s):
        last = max(last, min(float(latest_s), last + 0.25 * (last - first)))
    span = last - first if last > first else max(1.0, 1e-6 * abs(first))
    # Add a margin, so that marks on the boundary are visible.
    return first - 0.01 * span, first + 1.01 * span


@dataclass(frozen=True, slots=True, eq=False)
class Bins:
    """Evaluations (n, by time) grouped into pixel columns (k): first index and axis position of each column."""

    starts: Ints
    at_s: Reals

    @classmethod
    def from_times(cls, at_s: Reals, ends_s: tuple[float, float]) -> Bins:
        """Assign values to pixel columns; short series have one column per value."""
        if len(at_s) <= MAX_EXACT_EVALUATIONS:
            return cls(np.arange(len(at_s)), at_s)
        column = np.floor((at_s - ends_s[0]) / (ends_s[1] - ends_s[0]) * _COLUMNS)
        starts = np.flatnonzero(np.diff(column, prepend=-1.0))
        return cls(starts, at_s[starts])

    def lowest(self, values: Reals) -> Reals:
        """Minimum of the known values in each pixel column; NaN if none is known."""
        minima: Reals = np.fmin.reduceat(values, self.starts)
        return minima

    def highest(self, values: Reals) -> Reals:
        """Maximum of the known values in each pixel column; NaN if none is known."""
        maxima: Reals = np.fmax.reduceat(values, self.starts)
        return maxima
