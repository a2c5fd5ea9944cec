"""Runs whose phases are known, by a seed, and what is predicted of them."""

from __future__ import annotations

import numpy as np

from iosig.studies.predictions import planted as planted_phases
from iosig.studies.predictions.planted import PlantedRun, plant_phases
from iosig.transforms.predictions.predictor import Due, Evaluation, OnlineParams, Predictor, evaluate

__all__ = ["PlantedRun", "add_phase", "changing", "hacc_like", "plant_phases", "predicted"]


def hacc_like(seed: int) -> PlantedRun:
    """Ten phases as of HACC-IO (FTIO, Figure 15)."""
    return planted_phases.draw_hacc_run(np.random.default_rng(seed))


def changing(
    seed: int, period_s: float, ratio: float, counts: tuple[int, int] = (20, 20), jitter: float = 0.05
) -> PlantedRun:
    """Phases a period apart, then `ratio` times as far."""
    return planted_phases.draw_changing_run(np.random.default_rng(seed), period_s, ratio, counts, jitter)


def predicted(run: PlantedRun, params: OnlineParams | None = None) -> tuple[Predictor, list[Evaluation]]:
    """Predict at the end of each phase, when its requests have come."""
    predictor = Predictor(params)
    found = []
    for phase in range(run.phase_count):
        add_phase(predictor, run, phase)
        found += evaluate([Due(predictor, float(run.phase_end_s[phase]))])
    return predictor, found


def add_phase(predictor: Predictor, run: PlantedRun, phase: int) -> None:
    """Let a predictor have the requests of one phase."""
    predictor.add(run.requests(phase))
    predictor.pyramid.advance(float(run.phase_end_s[phase]))
