"""Naive implementation of `iosig.transforms.periods.null_model.segments`: part by part."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from iosig.transforms.periods.interface.detections import Detections
from iosig.transforms.periods.interface.even_signals import EvenSignals
from iosig.transforms.periods.null_model import detection
from iosig.transforms.periods.null_model.bursts import find_bursts
from iosig.transforms.periods.null_model.params import NullModelParams


@dataclass(frozen=True)
class Segment:
    """A segment, as in `detections.Segments`."""

    start_s: float
    end_s: float
    frequency_hz: float
    volume_bytes: float
    burst_width_s: float
    false_alarm_probability: float


def find_segments(values: np.ndarray, hz: float, start_s: float, params: NullModelParams, rounds: int) -> list[Segment]:
    """All segments of a signal in chronological order, found claim by claim."""
    result: list[Segment] = []
    todo = [(values, start_s, params.false_alarm_probability, float("nan"), 0)]
    while todo:
        piece, part_start_s, level, outer_hz, depth = todo.pop(0)
        levels = 0 if outer_hz == outer_hz else params.window_levels
        own_params = replace(params, false_alarm_probability=level, window_levels=levels)
        claim = detection.detect(EvenSignals.from_samples(piece, hz, part_start_s), own_params)
        if not claim.is_periodic[0] or (depth and not _is_valid(claim, piece, values, hz, outer_hz)):
            continue
        first = round(float(claim.window_start_s[0] - part_start_s) * hz)
        last = round(float(claim.window_end_s[0] - part_start_s) * hz)
        window, frequency = piece[first:last], float(claim.frequency_hz[0])
        selected = find_bursts(EvenSignals.from_samples(window, hz), np.array([frequency / hz]))
        width_s = float(selected.width_samples[0]) / hz
        result.append(
            Segment(
                float(claim.window_start_s[0]),
                float(claim.window_end_s[0]),
                frequency,
                float(np.nansum(window)) / hz,
                width_s,
                min(float(claim.false_alarm_probability[0]) * params.false_alarm_probability / level, 1.0),
            )
        )
        if depth == rounds:
            continue
        within = np.where(selected.is_burst[0] | (width_s * frequency > 1 / 3), np.nan, window)
        parts = [
            (piece[:first], part_start_s, outer_hz),
            (piece[last:], part_start_s + last / hz, outer_hz),
            (within, part_start_s + first / hz, frequency),
        ]
        enough = [
            part
            for part in parts
            if np.isfinite(part[0]).sum() >= 32 and np.nansum(part[0]) >= 1e-3 * np.nansum(values)
        ]
        todo += [(part, start, level / len(enough), outer, depth + 1) for part, start, outer in enough]
    return sorted(result, key=lambda item: item.start_s)


def _is_valid(claim: Detections, piece: np.ndarray, values: np.ndarray, hz: float, outer_hz: float) -> bool:
    """Whether a claim has two cycles and 0.1 % of the bytes, and is not a residual of the outer rhythm."""
    frequency = float(claim.frequency_hz[0])
    share = float(claim.details_or_nan.window_bytes_ratio[0]) * np.nansum(piece) / np.nansum(values)
    cycles = float(claim.window_end_s[0] - claim.window_start_s[0]) * frequency
    if cycles < 2 - 1e-9 or share < 1e-3:
        return False
    return all(abs(times - 1) > 0.1 for times in _list_ratios(frequency / outer_hz)) if outer_hz == outer_hz else True


def _list_ratios(times: float) -> list[float]:
    """Ratio of a frequency to the other frequency and its double and triple."""
    higher = max(times, 1 / times)
    return [higher / whole for whole in (1, 2, 3)]
