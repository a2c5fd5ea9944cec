"""How periodic a trace is at the period that was found."""

from __future__ import annotations

from studies.periods.semi_synthetic import Applications
from transforms.arrays import Reals
from transforms.periods.answers import Detections
from transforms.periods.periodicity import of_steps
from transforms.throughput.requests import Steps


def measured(steps: Steps, traces: Applications, found: Detections) -> dict[str, Reals]:
    """Return FTIO's further metrics of what is seen of traces (n); NaN, but for R_IO, without a period."""
    metrics = of_steps(steps, traces.window_start_s, traces.window_end_s, found.frequency_hz)
    return {
        "sigma_vol": metrics.sigma_vol,
        "sigma_time": metrics.sigma_time,
        "periodicity_score": metrics.periodicity_score,
        "r_io": metrics.r_io,
    }
