"""List the settings of the study: the planted runs, and the parameters of their predictions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import product

import numpy as np

from iosig.studies.predictions.planted import (
    HACC_PHASES,
    PlantedRun,
    add_background,
    draw_changing_run,
    draw_constant_run,
    draw_ending_run,
    draw_hacc_run,
    draw_irregular_run,
    draw_moving_run,
    draw_single_phase,
)
from iosig.transforms.predictions.predictor import OnlineParams

EXPERIMENTS = ("hacc", "changes", "following", "bursts", "none", "moving", "ends")
METHODS = ("null_tested", "dft", "merged")
STRATEGIES = ("all", "periods", "adaptive")
#: frequencies of the runs with a changing period, and jitters of their phases
FREQUENCIES_HZ = (0.005, 0.05, 0.5, 5.0)
JITTERS = (0.05, 0.1)
#: gaps before and after a change, and phases observed after it; later detections count as late
BEFORE, AFTER, OBSERVED_AFTER = 20, 20, 8
#: name of the branch with a small change
SMALL = "longer by 20 %"
#: ratio of the later to the earlier period, by branch of a run
BRANCHES = {"doubled": 2.0, "halved": 0.5, "unchanged": 1.0, SMALL: 1.2}
#: period [s] and number of phases of the runs in the experiments `following` and `bursts`; number of phases of runs
#: without a period
PERIOD_S, PHASE_COUNT, NONE_COUNT = 20.0, 24, 20
#: number of phases of moving rhythms; number of gaps before and after the end of a rhythm
MOVING_COUNT, END_COUNTS = 32, (15, 9)
#: distributions of the gaps after the end of a rhythm, and jitters before
ENDS, END_JITTERS = ("exponential", "log-normal", "uniform"), (0.02, 0.1)
#: number of rows of a run with a single phase, including its end
SINGLE_COUNT = 9


@dataclass(frozen=True, slots=True)
class Branch:
    """Continuation of a run after the common rows: how it is drawn, and the number of predicted rows."""

    draw: Callable[[np.random.Generator], PlantedRun]
    phase_count: int


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting of an experiment, with the branches of its runs.

    branches: continuations of each run after shared_count common rows. stream: settings of an experiment with the same
    stream have the same runs. frequency_hz, jitter: set if varied.
    """

    experiment: str
    name: str
    branches: dict[str, Branch]
    shared_count: int = 0
    stream: int = 0
    params: OnlineParams = field(default_factory=OnlineParams)
    frequency_hz: float | None = None
    jitter: float | None = None

    @property
    def cost(self) -> int:
        """Number of evaluations per run."""
        return self.shared_count + sum(branch.phase_count - self.shared_count for branch in self.branches.values())


def list_settings() -> tuple[Setting, ...]:
    """Return the settings of all experiments, in the order of `EXPERIMENTS`."""
    return (*_hacc(), *_changes(), *_following(), *_bursts(), *_none(), *_moving(), *_ends())


def _hacc() -> Iterator[Setting]:
    for method, strategy in product(METHODS, STRATEGIES):
        yield Setting(
            "hacc",
            f"{method}, {strategy}",
            {"hacc": Branch(draw_hacc_run, HACC_PHASES)},
            params=OnlineParams(method=method, strategy=strategy),
        )


def _build_branches(period_s: float, jitter: float, lengths: dict[str, int]) -> dict[str, Branch]:
    return {
        name: Branch(
            partial(draw_changing_run, period_s=period_s, ratio=BRANCHES[name], counts=(BEFORE, AFTER), jitter=jitter),
            length,
        )
        for name, length in lengths.items()
    }


def _changes() -> Iterator[Setting]:
    lengths = {
        "doubled": BEFORE + OBSERVED_AFTER,
        "halved": BEFORE + OBSERVED_AFTER,
        "unchanged": BEFORE + AFTER,
        SMALL: BEFORE + AFTER,
    }
    for stream, (hz, jitter) in enumerate(product(FREQUENCIES_HZ, JITTERS)):
        yield Setting(
            "changes",
            f"{hz:g} Hz, jitter {100 * jitter:.0f} %",
            _build_branches(1.0 / hz, jitter, lengths),
            # the change shows in the gap after the phase that these end with
            BEFORE + 1,
            stream,
            frequency_hz=hz,
            jitter=jitter,
        )


def _following() -> Iterator[Setting]:
    lengths = dict.fromkeys(("doubled", "halved"), BEFORE + AFTER - AFTER // 4)
    for strategy in STRATEGIES:
        yield Setting(
            "following",
            strategy,
            _build_branches(PERIOD_S, JITTERS[0], lengths),
            BEFORE + 1,
            params=OnlineParams(strategy=strategy),
        )


def _draw_regular_run(
    generator: np.random.Generator, jitter: float, desync_ratio: float, background: float
) -> PlantedRun:
    run = draw_changing_run(generator, PERIOD_S, 1.0, (PHASE_COUNT, 0), jitter, 16, desync_ratio)
    return add_background(run, generator, background) if background else run


def _bursts() -> Iterator[Setting]:
    usual = (0.05, 0.15, 0.0)
    varied = {
        "jitter 0 %": (0.0, *usual[1:]),
        "jitter 3 %": (0.03, *usual[1:]),
        "jitter 10 %": (0.1, *usual[1:]),
        "jitter 20 %": (0.2, *usual[1:]),
        "in step": (usual[0], 0.0, 0.0),
        "out of step by 50 %": (usual[0], 0.5, 0.0),
        "background 10 %": (*usual[:2], 0.1),
        "background 50 %": (*usual[:2], 0.5),
    }
    for stream, (name, (jitter, desync, background)) in enumerate(varied.items()):
        draw = partial(_draw_regular_run, jitter=jitter, desync_ratio=desync, background=background)
        yield Setting("bursts", name, {"regular": Branch(draw, PHASE_COUNT)}, stream=stream, jitter=jitter)


def _none() -> Iterator[Setting]:
    branches = {
        "random gaps": Branch(partial(draw_irregular_run, mean_gap_s=PERIOD_S, count=NONE_COUNT), NONE_COUNT),
        "constant": Branch(partial(draw_constant_run, row_s=PERIOD_S, count=NONE_COUNT), NONE_COUNT),
        "single phase": Branch(partial(draw_single_phase, phase_s=PERIOD_S, count=SINGLE_COUNT - 1), SINGLE_COUNT),
    }
    for method in METHODS:
        yield Setting("none", method, branches, params=OnlineParams(method=method))


def _moving() -> Iterator[Setting]:
    changes = {"growing by 3 % per gap": (0.03, 0.0), "swinging by 30 %": (0.0, 0.3)}
    for stream, ((name, (growth, swing)), jitter) in enumerate(product(changes.items(), (0.03, 0.2))):
        draw = partial(
            draw_moving_run, period_s=PERIOD_S, count=MOVING_COUNT, jitter=jitter, growth=growth, swing=swing
        )
        branches = {"moving": Branch(draw, MOVING_COUNT)}
        yield Setting("moving", f"{name}, jitter {100 * jitter:.0f} %", branches, stream=stream, jitter=jitter)


def _ends() -> Iterator[Setting]:
    for stream, (kind, jitter) in enumerate(product(ENDS, END_JITTERS)):
        draw = partial(draw_ending_run, period_s=PERIOD_S, counts=END_COUNTS, jitter=jitter, kind=kind)
        branches = {"ends": Branch(draw, sum(END_COUNTS))}
        yield Setting("ends", f"{kind}, jitter {100 * jitter:.0f} %", branches, stream=stream, jitter=jitter)
