"""Predict planted runs, phase by phase, and keep one row per evaluation and per rule."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import polars as pl

from iosig.studies.predictions.peer_rules import DetectedChange, PeerAdwin, PeerCusum, PeerPageHinkley
from iosig.studies.predictions.planted import PlantedRun, draw_hacc_run
from iosig.studies.predictions.scenarios import BEFORE, EXPERIMENTS, SMALL, Branch, Setting, list_settings
from iosig.studies.study import SeedParams
from iosig.studies.work_items import ReportProgress, ignore_progress, map_work_items
from iosig.transforms.predictions.change_points import DETECTOR_NAMES, Detector, create_detector
from iosig.transforms.predictions.predictor import Due, Evaluation, Predictor, evaluate

Row = dict[str, Any]

#: number of runs that are predicted together and share transforms; bounds the memory of a worker
CHUNK = 50
#: direction of the changes in period, in octaves
_DETECTED = {"doubled": 1.0, "halved": -1.0, SMALL: 1.0}

_EVALUATIONS = {
    "experiment": pl.String,
    "setting": pl.String,
    "method": pl.String,
    "strategy": pl.String,
    "branch": pl.String,
    "run": pl.Int64,
    "phase": pl.Int64,
    "now_s": pl.Float64,
    "window_start_s": pl.Float64,
    "outcome": pl.String,
    "true_period_s": pl.Float64,
    "next_gap_s": pl.Float64,
    "next_onset_s": pl.Float64,
    "later_gap_s": pl.Float64,
    "period_s": pl.Float64,
    "shortest_period_s": pl.Float64,
    "longest_period_s": pl.Float64,
    "probability": pl.Float64,
    "hit_probability": pl.Float64,
    "burst": pl.String,
    "earliest_s": pl.Float64,
    "start_s": pl.Float64,
    "latest_s": pl.Float64,
    "phase_count": pl.Int64,
    "is_changed": pl.Boolean,
}
_CHANGES = {
    "frequency_hz": pl.Float64,
    "jitter": pl.Float64,
    "branch": pl.String,
    "rule": pl.String,
    "run": pl.Int64,
    "lag": pl.Int64,
    "point_error": pl.Float64,
    "false_count": pl.Int64,
}


#: number of runs per setting, and seeds
StudyParams = SeedParams


@dataclass(frozen=True, slots=True)
class Results:
    """Evaluations of all runs, and changes detected by each rule; NULL without an answer.

    evaluations: one row per evaluation. phase: index of the run's last row. true_period_s: planted period; next_gap_s,
    next_onset_s: gap to the next phase and its onset; later_gap_s: mean gap from the second phase on. burst:
    `next_burst_outcome`, earliest_s to latest_s: its predicted range; is_changed: whether a change was detected. The
    rest is as in `predictions`.

    changes: one row per rule and run of the experiment `changes`. lag: gaps of the new period before the rule detected
    the change, in the right direction. point_error: error of its change point relative to the shorter period, positive
    if late. false_count: detections before the change, or all detections in runs without a change.
    """

    params: StudyParams
    evaluations: pl.DataFrame
    changes: pl.DataFrame


# ---- rules


class Rule(Protocol):
    """A sequential change detector: takes one period after another."""

    def add(self, period_s: float) -> DetectedChange | None:
        """Add the next period and return the detected change, if any."""


@dataclass(slots=True)
class OwnRule:
    """Adapter of iosig's detectors to the rule interface."""

    detector: Detector

    def add(self, period_s: float) -> DetectedChange | None:
        """Add the next period and return the detected change, if any."""
        change = self.detector.add(period_s)
        return None if change is None else DetectedChange(change.index, change.octaves)


#: rules by name: our detectors, and the peer's
PEERS: dict[str, Callable[[], Rule]] = {
    "peer's ADWIN": PeerAdwin,
    "peer's CUSUM": PeerCusum,
    "peer's Page-Hinkley": PeerPageHinkley,
}
RULES = (*DETECTOR_NAMES, *PEERS)


def _create_rules() -> dict[str, Rule]:
    detectors: dict[str, Rule] = {name: OwnRule(create_detector(name)) for name in DETECTOR_NAMES}
    return detectors | {name: create_rule() for name, create_rule in PEERS.items()}


@dataclass(slots=True)
class _Watch:
    """Feeds the rules with the gaps that a predictor observes, and records their detections.

    detected: phase, start of the new period, and octaves of each detection, by rule.
    """

    rules: dict[str, Rule] = field(default_factory=_create_rules)
    gaps: list[tuple[float, float]] = field(default_factory=list)
    detected: dict[str, list[tuple[int, float, float]]] = field(default_factory=lambda: {name: [] for name in RULES})

    def observe(self, observed: Sequence[tuple[float, float]], phase: int) -> None:
        for onset_s, next_s in observed[len(self.gaps) :]:
            self.gaps.append((onset_s, next_s))
            for name, rule in self.rules.items():
                change = rule.add(next_s - onset_s)
                if change is not None:
                    self.detected[name].append((phase, self.gaps[change.index][0], change.octaves))


# ---- work items


@dataclass(slots=True)
class _Trial:
    """A run and its predictor, up to the current phase."""

    number: int
    predictor: Predictor
    watch: _Watch | None
    evaluations: list[Evaluation] = field(default_factory=list)

    def fork(self) -> _Trial:
        """Copy the trial, so that it can continue independently."""
        return _Trial(self.number, deepcopy(self.predictor), deepcopy(self.watch), list(self.evaluations))


@dataclass(frozen=True, slots=True)
class _WorkItem:
    setting: Setting
    first: int
    count: int
    seed: int

    @property
    def cost(self) -> int:
        return self.count * self.setting.cost


def study(params: StudyParams, report_progress: ReportProgress = ignore_progress) -> Results:
    """Predict all runs; the results do not depend on the number of processes."""
    chunks = range(0, params.seed_count, CHUNK)
    items = [
        _WorkItem(setting, first, min(CHUNK, params.seed_count - first), params.seed)
        for setting in list_settings()
        for first in chunks
    ]
    parts = map_work_items(_process_item, items, params.worker_count, report_progress, [piece.cost for piece in items])
    return Results(params, *(pl.concat([part[index] for part in parts]) for index in range(2)))


def _process_item(item: _WorkItem) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Predict some runs of a setting in all its branches."""
    setting = item.setting
    numbers = range(item.first, item.first + item.count)
    runs = {
        name: [_draw_run(setting, branch, item.seed, number) for number in numbers]
        for name, branch in _list_branches(setting)
    }
    is_watched = setting.experiment == "changes"
    common = [_Trial(number, Predictor(setting.params), _Watch() if is_watched else None) for number in numbers]
    _predict(common, next(iter(runs.values())), range(setting.shared_count))
    rows: list[Row] = []
    changes: list[Row] = []
    for name, branch in _list_branches(setting):
        trials = [trial.fork() for trial in common]
        _predict(trials, runs[name], range(setting.shared_count, branch.phase_count))
        labels = {
            "experiment": setting.experiment,
            "setting": setting.name,
            "method": setting.params.method,
            "strategy": setting.params.strategy,
            "branch": name,
        }
        for trial, run in zip(trials, runs[name], strict=True):
            rows += [labels | _row(trial.number, run, *pair) for pair in enumerate(trial.evaluations)]
            changes += _change_rows(setting, name, trial, run)
    return pl.DataFrame(rows, schema=_EVALUATIONS), pl.DataFrame(changes, schema=_CHANGES)


def _list_branches(setting: Setting) -> Sequence[tuple[str, Branch]]:
    return list(setting.branches.items())


def _draw_run(setting: Setting, branch: Branch, seed: int, number: int) -> PlantedRun:
    """Draw one run; all branches of a setting use the same random stream."""
    key = (EXPERIMENTS.index(setting.experiment), setting.stream, number)
    return branch.draw(np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key)))


def _predict(trials: Sequence[_Trial], runs: Sequence[PlantedRun], phases: range) -> None:
    """Predict all runs in one batch after each phase, and append the evaluations to the trials."""
    for phase in phases:
        due = []
        for trial, run in zip(trials, runs, strict=True):
            now_s = float(run.phase_end_s[phase])
            trial.predictor.add(run.requests(phase))
            trial.predictor.pyramid.advance(now_s)
            due.append(Due(trial.predictor, now_s))
        for trial, evaluation in zip(trials, evaluate(due), strict=True):
            trial.evaluations.append(evaluation)
            if trial.watch is not None:
                trial.watch.observe(trial.predictor.observed, phase)


def _row(number: int, run: PlantedRun, phase: int, evaluation: Evaluation) -> Row:
    answer, burst = evaluation.answer, evaluation.burst
    is_last = phase + 1 >= run.phase_count
    return {
        "run": number,
        "phase": phase,
        "now_s": answer.window_end_s,
        "window_start_s": answer.window_start_s,
        "outcome": answer.outcome,
        "true_period_s": _nan_to_none(run.period_s[phase]),
        "next_gap_s": None if is_last else float(run.gaps_s[phase]),
        "next_onset_s": None if is_last else float(run.onset_s[phase + 1]),
        "later_gap_s": float(run.gaps_s[1:].mean()) if run.phase_count > 2 else None,
        "period_s": answer.period_s,
        "shortest_period_s": evaluation.periods and evaluation.periods.shortest_s,
        "longest_period_s": evaluation.periods and evaluation.periods.longest_s,
        "probability": evaluation.probability,
        "hit_probability": evaluation.hit_probability,
        "burst": burst.outcome,
        "earliest_s": _nan_to_none(burst.earliest_start_s),
        "start_s": _nan_to_none(burst.start_s),
        "latest_s": _nan_to_none(burst.latest_start_s),
        "phase_count": evaluation.phase_count,
        "is_changed": evaluation.change is not None,
    }


def _nan_to_none(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _change_rows(setting: Setting, branch: str, trial: _Trial, run: PlantedRun) -> Iterator[Row]:
    """Yield each rule's detections in a run."""
    if trial.watch is None:
        return
    shorter_s = float(run.period_s.min())
    for name, events in trial.watch.detected.items():
        lag = error = None
        false = [phase for phase, _, _ in events if branch not in _DETECTED or phase <= BEFORE]
        for phase, since_s, octaves in events:
            if lag is None and branch in _DETECTED and phase > BEFORE and octaves * _DETECTED[branch] > 0:
                lag, error = phase - BEFORE, (since_s - float(run.onset_s[BEFORE])) / shorter_s
        yield {
            "frequency_hz": setting.frequency_hz,
            "jitter": setting.jitter,
            "branch": branch,
            "rule": name,
            "run": trial.number,
            "lag": lag,
            "point_error": error,
            "false_count": len(false),
        }


# ---- one run, for a picture


def predict_example(seed: int) -> tuple[PlantedRun, Predictor, list[Evaluation]]:
    """Predict the first HACC-like run; returns the run, its predictor, and all evaluations."""
    key = (EXPERIMENTS.index("hacc"), 0, 0)
    run = draw_hacc_run(np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key)))
    predictor = Predictor()
    evaluations: list[Evaluation] = []
    for phase in range(run.phase_count):
        now_s = float(run.phase_end_s[phase])
        predictor.add(run.requests(phase))
        predictor.pyramid.advance(now_s)
        evaluations += evaluate([Due(predictor, now_s)])
    return run, predictor, evaluations
