"""Build the figure data of advice: the expected load of each file system, with the application's demand on top."""

from __future__ import annotations

import numpy as np

from iosig.answers.advice.inputs import FilesystemState, Rates
from iosig.answers.advice.query import AdviceResult
from iosig.reports.advice import AdviceView, DrawnFilesystem
from iosig.reports.texts import duration_text
from iosig.transforms.advice import Choice
from iosig.transforms.arrays import Reals

#: number of steps of the time axis, about one per pixel
#: margin after the last end, as a fraction of the axis
_STEPS, _MARGIN_RATIO = 1200, 0.04
#: remark on the origin of a capacity, by its basis
_BASES = {"observed": "capacity: highest observed rate", "settings": "", "mix": ""}


def build_view(result: AdviceResult) -> AdviceView:
    """Build the figure data on a common time axis, until the application has ended on every file system."""
    latest_s = max(best.delay_s for _, best in result.choices)
    horizon_s = (latest_s + max(result.signature.rates.duration_s, 1.0)) * (1 + _MARGIN_RATIO)
    step_s = max(horizon_s / _STEPS, 1e-3)
    return AdviceView(
        application=result.application_id,
        at=result.state.at.strftime("%Y-%m-%d %H:%M:%SZ"),
        step_s=step_s,
        delays_s=result.advice.delays_s,
        filesystems=tuple(_build_panel(result, best, step_s) for _, best in result.choices),
    )


def _build_panel(result: AdviceResult, best: Choice, step_s: float) -> DrawnFilesystem:
    state, rates = result.filesystems[best.partition], result.signature.rates
    return DrawnFilesystem(
        filesystem=state.filesystem,
        capacity_bytes_per_s=state.capacity_bytes_per_s,
        background_bytes_per_s=state.background_bytes_per_s,
        layers=_layers(state, step_s),
        demand_now=rates.resample(0.0, step_s, _STEPS),
        demand_best=rates.resample(-best.delay_s, step_s, _STEPS),
        expected_bytes_per_s=_compute_mean_load(result, state, step_s),
        best_delay_s=best.delay_s,
        contended_bytes=result.advice.contended_bytes[result.advice.partitions.index(state.filesystem)],
        low_contended_bytes=best.low_contended_bytes,
        high_contended_bytes=best.high_contended_bytes,
        remark="  ·  ".join(filter(None, _remarks(result, state))),
    )


def _compute_mean_load(result: AdviceResult, state: FilesystemState, step_s: float) -> Reals:
    """Return the mean expected load without the application; NaN beyond the horizon of the advice."""
    advice = result.advice
    load = advice.load_bytes_per_s[advice.partitions.index(state.filesystem)]
    edges = np.arange(len(load) + 1) * np.float64(advice.step_s)
    loads = Rates(edges, load).resample(0.0, step_s, _STEPS)
    loads[step_s * np.arange(1, _STEPS + 1) > edges[-1]] = np.nan
    return loads


def _layers(state: FilesystemState, step_s: float) -> tuple[tuple[str, Reals], ...]:
    """Return the demand on a file system per application, summed over its jobs."""
    layers: dict[str, Reals] = {}
    for job in state.now_running:
        if job.signature is not None:
            rates = job.signature.rates.resample(job.elapsed_s, step_s, _STEPS)
            name = job.application_id or job.name
            layers[name] = layers.get(name, np.zeros(_STEPS)) + rates
    return tuple((name, rates) for name, rates in layers.items() if rates.any())


def _remarks(result: AdviceResult, state: FilesystemState) -> tuple[str, ...]:
    unknown = sum(job.status == "unknown" for job in state.now_running)
    age_s = result.load_age_s(state)
    return (
        f"{unknown} unknown {'job' if unknown == 1 else 'jobs'} in the background" if unknown else "",
        _BASES[state.capacity_basis],
        f"STALE: last poll {duration_text(age_s or 0.0)} ago" if result.is_stale(state) else "",
    )
