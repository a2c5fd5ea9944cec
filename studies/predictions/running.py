"""The study itself: predicts planted runs, phase by phase, and keeps a row for each evaluation and for each rule."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import polars as pl

from iosig.studies.pieces import Told, nobody, worked
from iosig.studies.predictions.peer_rules import PeerAdwin, PeerCusum, PeerPageHinkley, Told as ToldChange
from iosig.studies.predictions.planted import PlantedRun, hacc_like
from iosig.studies.predictions.scenarios import BEFORE, EXPERIMENTS, SMALL, Branch, Setting, settings
from iosig.studies.study import SeedParams
from iosig.transforms.predictions.change_points import DETECTOR_NAMES, Detector, create_detector
from iosig.transforms.predictions.predictor import Due, Evaluation, Predictor, evaluate

Row = dict[str, Any]

#: runs that are predicted together: evaluations share transforms, and a worker's memory is bounded
CHUNK = 50
#: the direction of changes, in octaves of period
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


#: how much is predicted: runs of each setting
StudyParams = SeedParams


@dataclass(frozen=True, slots=True)
class Results:
    """What came of it; NULL where there is no answer.

    evaluations: a row for each evaluation. phase: after which row of the run, from 0. true_period_s: planted there;
    next_gap_s, next_onset_s: to the phase that followed, and when it began; later_gap_s: the mean gap from the second
    phase on. The rest is as in `predictions`; burst: `next_burst_outcome`, earliest_s to latest_s: when it was due;
    is_changed: whether a change was told.

    changes: a row for each rule and run of the experiment `changes`. lag: gaps of the new period that the rule had seen
    when it told of the change, in the right direction. point_error: how far its change point was off, in periods (the
    shorter one), late ones positive. false_count: changes that it told before the change; all of them where none is.
    """

    params: StudyParams
    evaluations: pl.DataFrame
    changes: pl.DataFrame


# ---- rules


class Rule(Protocol):
    """What takes a period after the other, and tells of changes."""

    def add(self, period_s: float) -> ToldChange | None:
        """Take the next period; return the change that it gives away, if any."""


@dataclass(slots=True)
class OwnRule:
    """One of our detectors."""

    of: Detector

    def add(self, period_s: float) -> ToldChange | None:
        """Take the next period; return the change that it gives away, if any."""
        change = self.of.add(period_s)
        return None if change is None else ToldChange(change.index, change.octaves)


#: rules by name: our detectors, and the peer's
PEERS: dict[str, Callable[[], Rule]] = {
    "peer's ADWIN": PeerAdwin,
    "peer's CUSUM": PeerCusum,
    "peer's Page-Hinkley": PeerPageHinkley,
}
RULES = (*DETECTOR_NAMES, *PEERS)


def _rules() -> dict[str, Rule]:
    own: dict[str, Rule] = {name: OwnRule(create_detector(name)) for name in DETECTOR_NAMES}
    return own | {name: made() for name, made in PEERS.items()}


@dataclass(slots=True)
class _Watch:
    """Feeds rules with the gaps that a predictor sees, and keeps what they tell: at which phase, since when."""

    rules: dict[str, Rule] = field(default_factory=_rules)
    gaps: list[tuple[float, float]] = field(default_factory=list)
    told: dict[str, list[tuple[int, float, float]]] = field(default_factory=lambda: {name: [] for name in RULES})

    def take(self, observed: Sequence[tuple[float, float]], phase: int) -> None:
        for onset_s, next_s in observed[len(self.gaps) :]:
            self.gaps.append((onset_s, next_s))
            for name, rule in self.rules.items():
                change = rule.add(next_s - onset_s)
                if change is not None:
                    self.told[name].append((phase, self.gaps[change.index][0], change.octaves))


# ---- pieces of work


@dataclass(slots=True)
class _Trial:
    """One run as far as it is predicted."""

    number: int
    predictor: Predictor
    watch: _Watch | None
    evaluations: list[Evaluation] = field(default_factory=list)

    def branched(self) -> _Trial:
        """Return one that goes on by itself."""
        return _Trial(self.number, deepcopy(self.predictor), deepcopy(self.watch), list(self.evaluations))


@dataclass(frozen=True, slots=True)
class _Piece:
    setting: Setting
    first: int
    count: int
    seed: int

    @property
    def cost(self) -> int:
        return self.count * self.setting.cost


def study(params: StudyParams, told: Told = nobody) -> Results:
    """Predict all runs. The same seed gives the same results, with any number of processes."""
    chunks = range(0, params.seed_count, CHUNK)
    pieces = [
        _Piece(setting, first, min(CHUNK, params.seed_count - first), params.seed)
        for setting in settings()
        for first in chunks
    ]
    parts = worked(_work, pieces, params.worker_count, told, [piece.cost for piece in pieces])
    return Results(params, *(pl.concat([part[which] for part in parts]) for which in range(2)))


def _work(piece: _Piece) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Predict some runs of a setting in all its branches."""
    setting = piece.setting
    numbers = range(piece.first, piece.first + piece.count)
    runs = {name: [_drawn(setting, branch, piece.seed, number) for number in numbers] for name, branch in _of(setting)}
    is_watched = setting.experiment == "changes"
    common = [_Trial(number, Predictor(setting.params), _Watch() if is_watched else None) for number in numbers]
    _predict(common, next(iter(runs.values())), range(setting.shared_count))
    rows: list[Row] = []
    changes: list[Row] = []
    for name, branch in _of(setting):
        trials = [trial.branched() for trial in common]
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


def _of(setting: Setting) -> Sequence[tuple[str, Branch]]:
    return list(setting.branches.items())


def _drawn(setting: Setting, branch: Branch, seed: int, number: int) -> PlantedRun:
    """Return one run: all branches of a setting are drawn from the same numbers."""
    key = (EXPERIMENTS.index(setting.experiment), setting.stream, number)
    return branch.draw(np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key)))


def _predict(trials: Sequence[_Trial], runs: Sequence[PlantedRun], phases: range) -> None:
    """Predict runs together, each at the end of each phase, when its requests have come."""
    for phase in phases:
        due = []
        for trial, run in zip(trials, runs, strict=True):
            now_s = float(run.phase_end_s[phase])
            trial.predictor.add(run.requests(phase))
            trial.predictor.pyramid.advance(now_s)
            due.append(Due(trial.predictor, now_s))
        for trial, found in zip(trials, evaluate(due), strict=True):
            trial.evaluations.append(found)
            if trial.watch is not None:
                trial.watch.take(trial.predictor.observed, phase)


def _row(number: int, run: PlantedRun, phase: int, found: Evaluation) -> Row:
    answer, burst = found.answer, found.burst
    is_last = phase + 1 >= run.phase_count
    return {
        "run": number,
        "phase": phase,
        "now_s": answer.window_end_s,
        "window_start_s": answer.window_start_s,
        "outcome": answer.outcome,
        "true_period_s": _known(run.period_s[phase]),
        "next_gap_s": None if is_last else float(run.gaps_s[phase]),
        "next_onset_s": None if is_last else float(run.onset_s[phase + 1]),
        "later_gap_s": float(run.gaps_s[1:].mean()) if run.phase_count > 2 else None,
        "period_s": answer.period_s,
        "shortest_period_s": found.periods and found.periods.shortest_s,
        "longest_period_s": found.periods and found.periods.longest_s,
        "probability": found.probability,
        "hit_probability": found.hit_probability,
        "burst": burst.outcome,
        "earliest_s": _known(burst.earliest_start_s),
        "start_s": _known(burst.start_s),
        "latest_s": _known(burst.latest_start_s),
        "phase_count": found.phase_count,
        "is_changed": found.change is not None,
    }


def _known(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _change_rows(setting: Setting, branch: str, trial: _Trial, run: PlantedRun) -> Iterator[Row]:
    """Yield what each rule told of a run."""
    if trial.watch is None:
        return
    shorter_s = float(run.period_s.min())
    for name, events in trial.watch.told.items():
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


def example(seed: int) -> tuple[PlantedRun, Predictor, list[Evaluation]]:
    """Return the first run like HACC-IO, its predictor at the end, and its evaluations."""
    key = (EXPERIMENTS.index("hacc"), 0, 0)
    run = hacc_like(np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key)))
    predictor = Predictor()
    found: list[Evaluation] = []
    for phase in range(run.phase_count):
        now_s = float(run.phase_end_s[phase])
        predictor.add(run.requests(phase))
        predictor.pyramid.advance(now_s)
        found += evaluate([Due(predictor, now_s)])
    return run, predictor, found
