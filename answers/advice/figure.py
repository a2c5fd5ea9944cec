"""What the picture of advice shows: the file systems' expected loads as signatures say, and the application on top."""

from __future__ import annotations

import numpy as np

from iosig.answers.advice.inputs import FilesystemState, Rates
from iosig.answers.advice.query import Advised
from iosig.reports.advice import AdviceView, DrawnFilesystem
from iosig.reports.texts import duration_text
from iosig.transforms.advice import Choice
from iosig.transforms.arrays import Reals

#: steps of the axis of time, about as many as there are pixels; and the share of it that is left after the last end
_STEPS, _MARGIN_RATIO = 1200, 0.04
#: others than these say where a capacity is from by themselves
_BASES = {"observed": "capacity: the most seen", "settings": "", "mix": ""}


def view_of(advised: Advised) -> AdviceView:
    """Return what there is to see of advice, on one axis of time: until the application has ended everywhere."""
    latest_s = max(best.delay_s for _, best in advised.choices)
    horizon_s = (latest_s + max(advised.signature.rates.duration_s, 1.0)) * (1 + _MARGIN_RATIO)
    step_s = max(horizon_s / _STEPS, 1e-3)
    return AdviceView(
        application=advised.application_id,
        at=advised.state.at.strftime("%Y-%m-%d %H:%M:%SZ"),
        step_s=step_s,
        delays_s=advised.advice.delays_s,
        filesystems=tuple(_drawn(advised, best, step_s) for _, best in advised.choices),
    )


def _drawn(advised: Advised, best: Choice, step_s: float) -> DrawnFilesystem:
    one, rates = advised.filesystems[best.partition], advised.signature.rates
    return DrawnFilesystem(
        filesystem=one.filesystem,
        capacity_bytes_per_s=one.capacity_bytes_per_s,
        background_bytes_per_s=one.background_bytes_per_s,
        layers=_layers(one, step_s),
        demand_now=rates.stepped(0.0, step_s, _STEPS),
        demand_best=rates.stepped(-best.delay_s, step_s, _STEPS),
        expected_bytes_per_s=_expected(advised, one, step_s),
        best_delay_s=best.delay_s,
        contended_bytes=advised.advice.contended_bytes[advised.advice.partitions.index(one.filesystem)],
        low_contended_bytes=best.low_contended_bytes,
        high_contended_bytes=best.high_contended_bytes,
        remark="  ·  ".join(filter(None, _remarks(advised, one))),
    )


def _expected(advised: Advised, one: FilesystemState, step_s: float) -> Reals:
    """Return the mean load that is expected without the application; NaN where the advice does not reach."""
    advice = advised.advice
    load = advice.load_bytes_per_s[advice.partitions.index(one.filesystem)]
    edges = np.arange(len(load) + 1) * np.float64(advice.step_s)
    found = Rates(edges, load).stepped(0.0, step_s, _STEPS)
    found[step_s * np.arange(1, _STEPS + 1) > edges[-1]] = np.nan
    return found


def _layers(one: FilesystemState, step_s: float) -> tuple[tuple[str, Reals], ...]:
    """Return what runs on a file system, by application, the jobs of each added up."""
    found: dict[str, Reals] = {}
    for job in one.now_running:
        if job.signature is not None:
            rates = job.signature.rates.stepped(job.elapsed_s, step_s, _STEPS)
            name = job.application_id or job.name
            found[name] = found.get(name, np.zeros(_STEPS)) + rates
    return tuple((name, rates) for name, rates in found.items() if rates.any())


def _remarks(advised: Advised, one: FilesystemState) -> tuple[str, ...]:
    unknown = sum(job.status == "unknown" for job in one.now_running)
    age_s = advised.load_age_s(one)
    return (
        f"{unknown} unknown {'job' if unknown == 1 else 'jobs'} in the background" if unknown else "",
        _BASES[one.capacity_basis],
        f"STALE: last poll {duration_text(age_s or 0.0)} ago" if advised.is_stale(one) else "",
    )
