"""List the settings of the semi-synthetic traces, and the kinds of noise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np

from iosig.studies.periods import noise
from iosig.studies.periods.semi_synthetic import NOISE_LEVELS, ApplicationParams
from iosig.transforms.arrays import Reals

Experiment = Literal["compute_time", "desynchronization", "variability", "cut", "io_time"]
#: observed window of a trace: from 0 to the end of the last phase, from one time within a period to another, or from
#: the first to the last request
ObservedWindow = Literal["whole", "cut", "io_time"]

#: f_s in section III-A of the paper
SAMPLING_HZ = 1.0
#: t_cpu of figures 8b, 8c and 9
COMPUTE_S = 11.0
#: number of samples of a noise signal
NULL_SAMPLE_COUNT = 1000


@dataclass(frozen=True, slots=True)
class Setting:
    """A combination of parameters of section III-A: the varied parameter, and its value on the figure's axis.

    window: the observed window; that of the paper's traces is `whole`.
    """

    experiment: Experiment
    value: float
    params: ApplicationParams
    window: ObservedWindow = "whole"


def list_settings() -> tuple[Setting, ...]:
    """Return the settings of figures 8a (t_cpu in s), 8b (phi in s), 8c and 9 (sigma / mu), `cut` and `io_time`.

    The paper gives the range of the last two, but no values of the first; ours are a quarter to four times mu. Its
    traces have 20 complete periods, so the true frequency is one of the transform's frequencies, which is rare in real
    traces. The traces of `cut` and `io_time` do not have this property. FTIO's own window is `io_time`: 19 periods
    and an I/O phase.
    """
    computing = (2.75, 5.5, 11.0, 22.0, 44.0)
    return (
        *(
            Setting("compute_time", t_cpu, ApplicationParams(compute_mean_s=t_cpu, noise_level=level))
            for t_cpu in computing
            for level in NOISE_LEVELS
        ),
        *(
            Setting("desynchronization", phi, ApplicationParams(compute_mean_s=COMPUTE_S, delay_mean_s=phi))
            for phi in (0.0, 2.75, 5.5, 8.25, 11.0, 13.75, 16.5, 19.25, 22.0)
        ),
        *(
            Setting(
                "variability",
                ratio,
                ApplicationParams(compute_mean_s=COMPUTE_S, compute_deviation_s=ratio * COMPUTE_S),
            )
            for ratio in (step / 10 for step in range(21))
        ),
        *(Setting("cut", t_cpu, ApplicationParams(compute_mean_s=t_cpu), "cut") for t_cpu in computing),
        *(Setting("io_time", t_cpu, ApplicationParams(compute_mean_s=t_cpu), "io_time") for t_cpu in computing),
    )


@dataclass(frozen=True, slots=True)
class Null:
    """A kind of signal without a period.

    draw(generator, count) returns samples (count, samples) in bytes per second; it is built from module-level
    functions, so that it can be pickled.
    """

    kind: Literal["white", "red", "bursts"]
    label: str
    draw: Callable[[np.random.Generator, int], Reals]


def _white_null(label: str, params: noise.LevelParams) -> Null:
    return Null("white", label, partial(noise.draw_white, sample_count=NULL_SAMPLE_COUNT, params=params))


def _ar1_null(correlation: float) -> Null:
    draw = partial(noise.draw_ar1, sample_count=NULL_SAMPLE_COUNT, correlation=correlation)
    return Null("red", f"AR(1), {correlation:g}", draw)


def _burst_null(label: str, params: noise.BurstParams) -> Null:
    draw = partial(noise.draw_bursts, sample_count=NULL_SAMPLE_COUNT, params=params, sampling_hz=SAMPLING_HZ)
    return Null("bursts", label, draw)


def list_nulls() -> tuple[Null, ...]:
    """Return the noise of each kind, with several parameters."""
    uneven = noise.BurstParams(count=20, duty=0.2, duration_log_spread=0.5, volume_log_spread=1.0)
    return (
        _white_null("normal", noise.LevelParams()),
        _white_null("log-normal", noise.LevelParams(relative_spread=1.0, is_skewed=True)),
        _ar1_null(0.5),
        _ar1_null(0.9),
        _ar1_null(0.99),
        _burst_null("10 bursts, duty 5 %", noise.BurstParams(count=10, duty=0.05)),
        _burst_null("20 bursts, duty 10 %", noise.BurstParams(count=20, duty=0.1)),
        _burst_null("20 uneven bursts, duty 20 %", uneven),
        _burst_null("50 bursts, duty 20 %", noise.BurstParams(count=50, duty=0.2)),
        _burst_null("50 bursts, duty 50 %, one by one", noise.BurstParams(count=50, duty=0.5, may_overlap=False)),
    )


def list_examples() -> dict[str, Setting]:
    """Return the settings shown as examples, by title."""
    level = {level: ApplicationParams(compute_mean_s=COMPUTE_S, noise_level=level) for level in NOISE_LEVELS}
    late = ApplicationParams(compute_mean_s=COMPUTE_S, delay_mean_s=5.5)
    varied = ApplicationParams(compute_mean_s=COMPUTE_S, compute_deviation_s=COMPUTE_S)
    return {
        "t_cpu = 11 s, no noise": Setting("compute_time", COMPUTE_S, level["none"]),
        "t_cpu = 11 s, high noise": Setting("compute_time", COMPUTE_S, level["high"]),
        "t_cpu = 11 s, mean delay phi = 5.5 s": Setting("desynchronization", 5.5, late),
        "mean t_cpu mu = 11 s, sigma/mu = 1": Setting("variability", 1.0, varied),
    }
