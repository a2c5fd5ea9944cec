"""Runs whose phases are known, phase by phase, and what is predicted of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from transforms.online_periods import Due, Evaluation, OnlineParams, Predictor, evaluate
from transforms.throughput import Requests

Reals = npt.NDArray[np.float64]


@dataclass(frozen=True)
class PlantedRun:
    """Phases (p) of a run: onsets, and the requests of each (p, ranks)."""

    onset_s: Reals
    began_s: Reals
    ceased_s: Reals
    request_bytes: float = 1e7

    @property
    def phase_count(self) -> int:
        return len(self.onset_s)

    @property
    def gaps_s(self) -> Reals:
        return np.diff(self.onset_s)


def planted(onset_s: Reals, length_s: Reals, rng: np.random.Generator, ranks: int = 16) -> PlantedRun:
    """Plant phases whose ranks are out of step by up to 15 % of a phase; the first rank is in step."""
    late = rng.uniform(0.0, 0.15, (2, len(onset_s), ranks)) * length_s[:, None]
    late[:, :, 0] = 0.0
    return PlantedRun(onset_s, onset_s[:, None] + late[0], (onset_s + length_s)[:, None] - late[1])


def hacc_like(seed: int) -> PlantedRun:
    """FTIO, Figure 15: ten phases that begin 8.7 s apart on average; the first one lasts from 4.1 s to 15.3 s.

    Without the first they are 7.7 s apart (section III-B), so that the second begins 16.7 s after the first.
    """
    rng = np.random.default_rng(seed)
    gaps = 1 + 0.03 * rng.standard_normal(8)
    onsets = 4.1 + np.cumsum(np.concatenate([[0.0, 16.7], gaps * (9 * 8.7 - 16.7) / gaps.sum()]))
    return planted(onsets, np.concatenate([[15.3 - 4.1], 3 + 0.3 * rng.standard_normal(9)]), rng)


def changing(
    seed: int, period_s: float, ratio: float, counts: tuple[int, int] = (20, 20), jitter: float = 0.05
) -> PlantedRun:
    """Phases a period apart, then `ratio` times as far; a phase lasts 15 % of the first period."""
    rng = np.random.default_rng(seed)
    gaps = np.repeat([period_s, period_s * ratio], counts) * (1 + jitter * rng.standard_normal(sum(counts)))
    onsets = 0.3 * period_s + np.concatenate([[0.0], np.cumsum(gaps)[:-1]])
    return planted(onsets, 0.15 * period_s * (1 + 0.1 * rng.standard_normal(len(onsets))), rng, ranks=4)


def predicted(run: PlantedRun, params: OnlineParams | None = None) -> tuple[Predictor, list[Evaluation]]:
    """Predict at the end of each phase, when its requests have come."""
    predictor = Predictor(params)
    found = []
    for phase in range(run.phase_count):
        add_phase(predictor, run, phase)
        found += evaluate([Due(predictor, float(run.ceased_s[phase].max()))])
    return predictor, found


def add_phase(predictor: Predictor, run: PlantedRun, phase: int) -> None:
    """Let a predictor have the requests of one phase."""
    began, ceased = run.began_s[phase], run.ceased_s[phase]
    predictor.add(Requests.of_one(began, ceased, np.full(len(began), run.request_bytes)))
    predictor.samples.advance(float(ceased.max()))
