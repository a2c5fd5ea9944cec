"""Periods of many signals by every method, and how alike the periods are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from transforms import periodicity
from transforms.detections import Detections, gathered
from transforms.periodicity import Periodicity
from transforms.sampled import Sampled, by_length
from transforms.samples import Ragged
from transforms.throughput import Steps
from transforms.windows import clipped_samples

if TYPE_CHECKING:
    from transforms.autocorrelations import AutocorrelationParams
    from transforms.autoperiod import AutoperiodParams
    from transforms.controlled import ControlledParams
    from transforms.dft import DftParams

Reals = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

#: every method, the default first
METHODS = ("controlled", "dft", "autocorrelation", "merged", "autoperiod")
#: two full cycles, but for rounding
_LEAST_CYCLES = 2 - 1e-9


@dataclass(frozen=True, slots=True)
class PeriodParams:
    """How periods are sought.

    methods: which of `METHODS`. max_missing_ratio: the share of a signal that may not have been measured (ours: the
    papers have no gaps). The rest: the parameters of each method, its own defaults where None.
    """

    methods: tuple[str, ...] = METHODS
    max_missing_ratio: float = 0.5
    controlled: ControlledParams | None = None
    dft: DftParams | None = None
    autocorrelation: AutocorrelationParams | None = None
    autoperiod: AutoperiodParams | None = None


@dataclass(frozen=True, slots=True)
class Periods:
    """What one method says of n signals.

    detections: its answers. refined_confidence (n): FTIO's, NaN where there is none. periodicity: how alike the
    periods are, over each answer's own window.
    """

    method: str
    detections: Detections
    refined_confidence: Reals
    periodicity: Periodicity


def find(
    samples: Ragged,
    sampling_hz: Reals,
    started_s: Reals,
    params: PeriodParams | None = None,
    steps: Steps | None = None,
) -> list[Periods]:
    """Return what each method says of n signals.

    samples: in bytes per second, NaN where not measured. sampling_hz, started_s (n). steps: the signals exactly, if
    they are known so: then the periods are compared on them, else on the samples, each of which holds until the next.
    """
    params = params or PeriodParams()
    places, parts = [], []
    for place, group in by_length(samples, sampling_hz, started_s):
        places.append(place)
        parts.append(_answers(group, params))
    found = []
    for method in (name for name in METHODS if name in params.methods):
        detections = gathered([part[method][0] for part in parts], places)
        refined = np.full(len(sampling_hz), np.nan)
        for place, part in zip(places, parts, strict=True):
            refined[place] = part[method][1]
        refined[~detections.is_periodic] = np.nan
        measured = compared(detections, samples, sampling_hz, started_s, steps)
        found.append(Periods(method, detections, refined, measured))
    return found


def _answers(group: Sampled, params: PeriodParams) -> Mapping[str, tuple[Detections, Reals]]:
    """Return what each wanted method says of signals of one length, with the refined confidence (n)."""
    wanted = set(params.methods)
    none = np.full(group.signal_count, np.nan)
    found = {}
    # Each method is imported where it is run: most calls want one, and AUTOPERIOD's sparse matrices take long.
    if "controlled" in wanted:
        from transforms import controlled

        found["controlled"] = controlled.detect(group, params.controlled or controlled.ControlledParams()), none
    if wanted & {"dft", "merged"}:
        from transforms import dft

        found["dft"] = dft.detect(group, params.dft), none
    if wanted & {"autocorrelation", "merged"}:
        from transforms import autocorrelations

        found["autocorrelation"] = autocorrelations.detect(group, params.autocorrelation), none
    if "merged" in wanted:
        from transforms.refinement import refine

        merged = refine(found["dft"][0], found["autocorrelation"][0])
        found["merged"] = merged.detections, merged.refined_confidence
    if "autoperiod" in wanted:
        from transforms import autoperiod

        found["autoperiod"] = autoperiod.detect_sampled(group, params.autoperiod), none
    return {method: (_judged(answer, group, params), refined) for method, (answer, refined) in found.items()}


def _judged(answer: Detections, group: Sampled, params: PeriodParams) -> Detections:
    """Return answers without those that no method should give: of what is mostly missing, or of too few cycles."""
    missing = group.missing_ratio
    is_gappy = (missing > params.max_missing_ratio) & (missing < 1)
    with np.errstate(invalid="ignore"):
        cycles = (answer.window_end_s - answer.window_start_s) * answer.frequency_hz
        is_short = cycles < _LEAST_CYCLES
    return answer.denied(is_short, "aperiodic").denied(is_gappy, "too_many_gaps")


def compared(
    found: Detections, samples: Ragged, sampling_hz: Reals, started_s: Reals, steps: Steps | None
) -> Periodicity:
    """Return how alike the periods of each signal are, within the window of its answer."""
    if steps is not None:
        return periodicity.of_steps(steps, found.window_start_s, found.window_end_s, found.frequency_hz)
    places, parts = [], []
    for place, group in by_length(samples, sampling_hz, started_s):
        within, starts = clipped_samples(group, found.window_start_s[place], found.window_end_s[place])
        for inner, part in by_length(within, sampling_hz[place], starts):
            places.append(place[inner])
            parts.append(periodicity.of_sampled(part, found.frequency_hz[place[inner]]))
    order = np.argsort(np.concatenate([*places, np.zeros(0, dtype=np.int64)]), kind="stable")
    none = np.zeros(0)
    columns = {
        each.name: np.concatenate([*(getattr(part, each.name) for part in parts), none]) for each in fields(Periodicity)
    }
    return Periodicity(**{name: column[order] for name, column in columns.items()})
