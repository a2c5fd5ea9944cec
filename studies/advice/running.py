"""Draw mixes of running applications, place a new one by every policy, and simulate the outcome.

The ground truth is `iosig.transforms.synthetic.contention`, in which transfers share a partition and delay everything
that follows; the advice knows only the demands.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import polars as pl

from iosig.studies.study import SeedParams
from iosig.studies.work_items import ReportProgress, ignore_progress, map_work_items
from iosig.transforms.advice import Advice, AdviceParams, Partition, RunningApplication, advise
from iosig.transforms.arrays import Bools, Reals, offsets_of
from iosig.transforms.demands import Demand
from iosig.transforms.synthetic.contention import Chains, SharedBandwidth, SharingResult, simulate_sharing
from iosig.transforms.synthetic.site import signature
from iosig.transforms.synthetic.workload import PROFILE, Application, Burst

#: time at which the new application is placed; all running applications have started by then [s]
NOW_S = 7200.0
#: look-back times of a scheduler, for the current load and for the unattributed load [s]
RECENT_S, PAST_S = 300.0, 1800.0
#: step of the advice's grid: twice the default, which hardly changes any choice [s]
GRID_S = 4.0
ADVICE = AdviceParams(step_s=GRID_S)
#: spacing of the delays that the oracle tries [s]
ORACLE_STEP_S = 300.0
#: maximum delay of the policy `contention, short delay` [s]
SHORT_DELAY_S = 600.0
#: differences below this fraction of the application's bytes count as ties
EQUAL_RATIO = 1e-4
#: evaluation window, as a multiple of the new application's undisturbed duration
_LONGER_RATIO = 1.25
#: independent random streams
_MIX, _PACE, _KNOWN, _LOT = range(4)

# ---- settings


@dataclass(frozen=True, slots=True)
class Applications:
    """Distributions of the drawn applications: all uniform, the period log-uniform.

    load_ratio: mean load of a partition's runs as a fraction of its capacity; a partition has two or more runs.
    period_s: interval between bursts. busy_ratios: fraction of this interval that an undisturbed burst takes.
    peak_bytes_per_s: peak rate of a burst. run_s: approximate duration of a run.
    """

    load_ratio: tuple[float, float] = (0.3, 0.7)
    period_s: tuple[float, float] = (60.0, 1200.0)
    busy_ratios: tuple[float, float] = (0.05, 0.35)
    peak_bytes_per_s: tuple[float, float] = (0.5e9, 2.5e9)
    run_s: tuple[float, float] = (1800.0, 7200.0)


@dataclass(frozen=True, slots=True)
class Setting:
    """Parameters of a mix, and of the scheduler's knowledge about it.

    drift_ratio: see `workload.Workload`. seek_loss_ratio: see `contention.Pipe`. is_followed: whether the start of each
    running job's last burst is known; otherwise only the job's start. position_error_s, volume_error_ratio: standard
    deviations of the errors in each job's position and each signature's height (log scale), unknown to the advice.
    unknown_ratio: fraction of running jobs without a signature.
    """

    applications: Applications = field(default_factory=Applications)
    drift_ratio: float = 0.015
    seek_loss_ratio: float = 0.0
    is_followed: bool = True
    position_error_s: float = 0.0
    volume_error_ratio: float = 0.0
    unknown_ratio: float = 0.0

    @property
    def mix_key(self) -> tuple[object, ...]:
        """The fields that determine the mix; settings with equal keys share simulations."""
        return (self.applications, self.drift_ratio, self.seek_loss_ratio)


#: IOSI, section 5.3: applications keep their I/O to 5 to 10 percent of the run
_BRIEF = Applications(busy_ratios=(0.05, 0.10))
_IDLE = Applications(load_ratio=(0.0, 0.5))
USUAL = "usual"
#: description and parameters of each setting
SETTINGS: dict[str, tuple[str, Setting]] = {
    USUAL: ("exact signatures; known start and last burst of each running job", Setting()),
    "job log": ("only the start of each job is known", Setting(is_followed=False)),
    "phase error": ("known positions have an error of 30 s", Setting(position_error_s=30.0)),
    "volume error": ("signatures have an error of 30 % of their height", Setting(volume_error_ratio=0.3)),
    "unknown jobs": ("20 % of the running jobs have no signature", Setting(unknown_ratio=0.2)),
    "all errors": (
        "all four errors",
        Setting(is_followed=False, position_error_s=30.0, volume_error_ratio=0.3, unknown_ratio=0.2),
    ),
    "little drift": ("runs differ by 0.3 % instead of 1.5 %", Setting(drift_ratio=0.003)),
    "large drift": ("runs differ by 5 %", Setting(drift_ratio=0.05)),
    "brief bursts": ("I/O takes 5 to 10 % of each job's time alone, so that more jobs run", Setting(_BRIEF)),
    "idle partitions": ("loads of 0 to 50 %: some partitions are almost idle", Setting(_IDLE)),
    "seeks": ("each concurrent transfer reduces a transfer's speed by a quarter", Setting(seek_loss_ratio=0.25)),
}
#: description of each policy
POLICIES = {
    "random": "any partition",
    "least loaded": f"the partition with the lowest load in the last {RECENT_S / 60:.0f} minutes",
    "least mean": "the partition with the lowest expected load during the run, from signatures",
    "least loaded, delayed": "`least loaded`, with the delay of `contention, delayed`: the effect of waiting alone",
    "correlation": "IOSI's: the lowest load that the application's bytes meet",
    "contention": "the fewest expected contended bytes",
    "contention, short delay": f"the same, with the best delay up to {SHORT_DELAY_S / 60:.0f} min",
    "contention, delayed": f"the same, up to {AdviceParams().max_delay_s / 60:.0f} min: `iosig advise`",
    "oracle": "the best partition, from simulating all of them",
    "oracle, delayed": f"the same with delays {ORACLE_STEP_S:g} s apart",
}

# ---- mixes


@dataclass(frozen=True, slots=True)
class Run:
    """A planned run of an application.

    demand: the application's true signature. offsets_s: start of each burst in the signature. start_s: start of the
    run. wait_s, volume_bytes, peak_bytes_per_s: its transfers, several per burst, and a final wait without a transfer.
    """

    demand: Demand
    offsets_s: Reals
    start_s: float
    wait_s: Reals
    volume_bytes: Reals
    peak_bytes_per_s: Reals

    @property
    def volume(self) -> float:
        """Total bytes of the run."""
        return float(self.volume_bytes.sum())

    @property
    def duration_s(self) -> float:
        """Duration of the undisturbed application."""
        return len(self.demand.bytes_per_s) * self.demand.step_s


@dataclass(frozen=True, slots=True)
class Mix:
    """Partitions of equal capacity with their runs, and the run to place (starts at NOW_S)."""

    capacity_bytes_per_s: float
    partitions: tuple[tuple[Run, ...], ...]
    new: Run


def draw_mix(setting: Setting, seed: int, number: int) -> Mix:
    """Draw 3 to 8 partitions of 2 to 4 GB/s each, with runs at random points of their course."""
    rng, paces = (np.random.default_rng([seed, number, purpose]) for purpose in (_MIX, _PACE))
    capacity = rng.uniform(2e9, 4e9)
    partitions = []
    for _ in range(int(rng.integers(3, 9))):
        applications = list(_draw_applications(setting.applications, capacity, rng))
        elapsed_times = [rng.uniform(0.0, 0.9) * application.duration_s for application in applications]
        partitions.append(
            tuple(
                _draw_run(application, NOW_S - elapsed_s, setting.drift_ratio, paces)
                for application, elapsed_s in zip(applications, elapsed_times, strict=True)
            )
        )
    new = _draw_run(_draw_application(setting.applications, rng), NOW_S, setting.drift_ratio, paces)
    return Mix(capacity, tuple(partitions), new)


def _draw_applications(distribution: Applications, capacity: float, rng: np.random.Generator) -> Iterator[Application]:
    """Yield two or more applications, until their load reaches a random target."""
    target_load = rng.uniform(*distribution.load_ratio) * capacity
    load, count = 0.0, 0
    while load < target_load or count < 2:
        application = _draw_application(distribution, rng)
        load, count = load + application.volume_bytes("write") / application.duration_s, count + 1
        yield application


def _draw_application(distribution: Applications, rng: np.random.Generator) -> Application:
    """Draw an application that alternates computing and bursts, at most NOW_S long."""
    every = float(np.exp(rng.uniform(*np.log(distribution.period_s))))
    busy, peak = rng.uniform(*distribution.busy_ratios), rng.uniform(*distribution.peak_bytes_per_s)
    run_s = rng.uniform(*distribution.run_s)
    profile_s = sum(volume / height for volume, height in PROFILE)
    volume = busy * every * peak / profile_s
    # a burst follows its computing; the margin keeps the last one within the duration despite rounding
    bursts = [Burst((cycle + 1 - busy) * every - 1e-6, volume, peak) for cycle in range(max(1, int(run_s / every)))]
    return Application("planted", "", "", 1, len(bursts) * every, tuple(bursts))


def _draw_run(application: Application, start_s: float, drift_ratio: float, rng: np.random.Generator) -> Run:
    """Draw a run with random pace: waits and burst speeds vary as on the synthetic site."""
    count = len(application.bursts)
    stretch = 1.0 + drift_ratio * (rng.standard_normal() + 0.3 * rng.standard_normal(count + 1))
    computing = np.array(application.waits_s) * np.maximum(stretch, 0.5)
    speeds = np.exp(2.0 * drift_ratio * rng.standard_normal(count))
    shape = np.array(PROFILE)
    volumes = np.outer([burst.volume_bytes for burst in application.bursts], shape[:, 0])
    peaks = np.outer([burst.peak_bytes_per_s for burst in application.bursts] * speeds, shape[:, 1])
    waits = np.zeros_like(volumes)
    waits[:, 0] = computing[:-1]
    return Run(
        Demand(signature(application, "write"), 1.0),
        np.array([burst.offset_s for burst in application.bursts]),
        start_s,
        np.append(waits, computing[-1]),
        np.append(volumes, 0.0),
        np.append(peaks, 1.0),
    )


# ---- outcomes


@dataclass(frozen=True, slots=True)
class Outcome:
    """I/O times and contended bytes of the runs on a partition, within the evaluation window.

    late_bytes: bytes of all transfers that arrive after an undisturbed transfer would have finished. io_s, alone_s:
    actual and undisturbed I/O time of the other runs. own_io_s, own_alone_s: the same for the new run.
    """

    late_bytes: float
    io_s: float
    alone_s: float
    own_io_s: float = 0.0
    own_alone_s: float = 0.0


def simulate_partition(runs: tuple[Run, ...], pipe: SharedBandwidth, until_s: float) -> SharingResult:
    """Simulate runs on one partition; each run has its own channel."""
    sizes = [len(run.wait_s) for run in runs]
    volume = np.concatenate([run.volume_bytes for run in runs])
    return simulate_sharing(
        Chains(
            np.array([run.start_s for run in runs]),
            offsets_of(sizes),
            np.concatenate([run.wait_s for run in runs]),
            volume,
            np.concatenate([run.peak_bytes_per_s for run in runs]),
            np.ones(len(volume)),
            np.repeat(np.arange(len(runs)), sizes).astype(np.int64),
        ),
        pipe,
        until_s,
    )


def compute_late_bytes(run: Run, start_s: Reals, shared: SharingResult, channel: int, is_judged: Bools) -> float:
    """Return the bytes of evaluated transfers that arrive after an undisturbed transfer would have finished."""
    transfer_start_s, alone_s = start_s[is_judged], (run.volume_bytes / run.peak_bytes_per_s)[is_judged]
    totals = shared.moved_total_bytes[:, channel]
    moved = np.interp(transfer_start_s + alone_s, shared.at_s, totals) - np.interp(
        transfer_start_s, shared.at_s, totals
    )
    return float(np.maximum(run.volume_bytes[is_judged] - moved, 0.0).sum())


def evaluate_runs(runs: tuple[Run, ...], shared: SharingResult, until_s: float, new: int | None = None) -> Outcome:
    """Sum the outcome of all transfers that start between NOW_S and `until_s`; `new` is the index of the new run."""
    late, io_s, alone_s = 0.0, np.zeros(len(runs)), np.zeros(len(runs))
    end = 0
    for number, run in enumerate(runs):
        begin, end = end, end + len(run.wait_s)
        started = shared.start_s[begin:end]
        is_judged = (started >= NOW_S) & (started < until_s) & (run.volume_bytes > 0)
        late += compute_late_bytes(run, started, shared, number, is_judged)
        io_s[number] = float((np.nan_to_num(shared.end_s[begin:end], nan=shared.at_s[-1]) - started)[is_judged].sum())
        alone_s[number] = float((run.volume_bytes / run.peak_bytes_per_s)[is_judged].sum())
    if new is None:
        return Outcome(late, float(io_s.sum()), float(alone_s.sum()))
    own_times_s = float(io_s[new]), float(alone_s[new])
    return Outcome(late, float(io_s.sum()) - own_times_s[0], float(alone_s.sum()) - own_times_s[1], *own_times_s)


class Judge:
    """Simulates a mix with the new run at a given partition and delay, and caches the outcomes."""

    def __init__(self, mix: Mix, seek_loss_ratio: float, max_delay_s: float) -> None:
        self.mix = mix
        self._pipe = SharedBandwidth(mix.capacity_bytes_per_s, seek_loss_ratio)
        self._until_s = NOW_S + max_delay_s + _LONGER_RATIO * mix.new.duration_s
        self._horizon_s = self._until_s + max_delay_s
        self.without = [simulate_partition(runs, self._pipe, self._horizon_s) for runs in mix.partitions]
        self._usual = [
            evaluate_runs(runs, shared, self._until_s)
            for runs, shared in zip(mix.partitions, self.without, strict=True)
        ]
        self._outcomes: dict[tuple[int, float], dict[str, float]] = {}

    def outcome(self, partition: int, delay_s: float) -> dict[str, float]:
        """Return contended_ratio, io_slowdown and others_slowdown of a placement.

        contended_ratio: late bytes that the new run adds, relative to its bytes. io_slowdown: its I/O time relative to
        an undisturbed run. others_slowdown: I/O time of the other runs on its partition, relative to that without it.
        """
        place = (partition, delay_s)
        if place not in self._outcomes:
            runs = (*self.mix.partitions[partition], replace(self.mix.new, start_s=NOW_S + delay_s))
            shared = simulate_partition(runs, self._pipe, self._horizon_s)
            outcome, baseline = evaluate_runs(runs, shared, self._until_s, len(runs) - 1), self._usual[partition]
            self._outcomes[place] = {
                "contended_ratio": (outcome.late_bytes - baseline.late_bytes) / self.mix.new.volume,
                "io_slowdown": outcome.own_io_s / outcome.own_alone_s,
                "others_slowdown": _ratio(outcome.io_s, outcome.alone_s) / _ratio(baseline.io_s, baseline.alone_s),
            }
        return self._outcomes[place]


def _ratio(io_s: float, alone_s: float) -> float:
    return io_s / alone_s if alone_s > 0 else 1.0


# ---- knowledge of the scheduler


def observe_mix(
    mix: Mix, results_without: list[SharingResult], setting: Setting, rng: np.random.Generator
) -> tuple[Demand, list[Partition]]:
    """Return the new run's signature and the partitions, as the scheduler knows them at NOW_S."""
    partitions = []
    for number, (runs, shared) in enumerate(zip(mix.partitions, results_without, strict=True)):
        running_jobs = []
        ends = np.cumsum([len(run.wait_s) for run in runs])
        for run, end in zip(runs, ends, strict=True):
            run_start_s, run_end_s = shared.start_s[end - len(run.wait_s) : end], shared.end_s[end - 1]
            error_s, height = setting.position_error_s * rng.standard_normal(), _draw_height_factor(setting, rng)
            is_unknown = rng.random() < setting.unknown_ratio
            if not (is_unknown or run_end_s <= NOW_S):
                course = _estimate_course(run, run_start_s) if setting.is_followed else _Course(NOW_S - run.start_s)
                running_jobs.append(course.to_running(f"job {end}", _scale_demand(run.demand, height), error_s))
        past_bytes_per_s = _compute_past_rate(shared, PAST_S)
        predicted_bytes_per_s = sum(_predict_past_rate(running) for running in running_jobs)
        partitions.append(
            Partition(
                f"partition {number}",
                mix.capacity_bytes_per_s,
                max(0.0, past_bytes_per_s - predicted_bytes_per_s),
                tuple(running_jobs),
            )
        )
    return _scale_demand(mix.new.demand, _draw_height_factor(setting, rng)), partitions


@dataclass(frozen=True, slots=True)
class _Course:
    """Estimated progress of a run, from its last observed burst, if any; see `Running` for the fields."""

    elapsed_s: float
    position_error_s: float | None = None
    tempo: float = 1.0

    def to_running(self, name: str, demand: Demand, error_s: float) -> RunningApplication:
        """Return the `Running` job given to the advice, with an error added to its position."""
        return RunningApplication(name, demand, self.elapsed_s + error_s, self.position_error_s, self.tempo)


def _estimate_course(run: Run, begun_s: Reals) -> _Course:
    """Estimate a run's position from its last burst, and its tempo since the job's start."""
    firsts = begun_s[:-1][:: len(PROFILE)]
    burst_count = int(np.sum(firsts <= NOW_S))
    if not burst_count:
        return _Course(NOW_S - run.start_s)
    place, since_s = float(run.offsets_s[burst_count - 1]), NOW_S - float(firsts[burst_count - 1])
    tempo = place / (float(firsts[burst_count - 1]) - run.start_s)
    return _Course(place + since_s * tempo, AdviceParams().start_error_s, tempo)


def _draw_height_factor(setting: Setting, rng: np.random.Generator) -> float:
    return float(np.exp(setting.volume_error_ratio * rng.standard_normal()))


def _scale_demand(demand: Demand, height: float) -> Demand:
    return replace(demand, bytes_per_s=demand.bytes_per_s * height)


def _compute_past_rate(shared: SharingResult, past_s: float) -> float:
    return float(shared.volumes(np.array([NOW_S - past_s, NOW_S])).sum()) / past_s


def _predict_past_rate(running: RunningApplication) -> float:
    """Return the mean rate that a signature predicts for the past PAST_S seconds [B/s]."""
    volumes = np.concatenate([[0.0], np.cumsum(running.demand.bytes_per_s)])
    places = np.array([running.elapsed_s - PAST_S, running.elapsed_s])
    return float(np.diff(np.interp(places, np.arange(len(volumes)), volumes))[0]) / PAST_S


# ---- policies


def choose_placements(
    judge: Judge, advice: Advice, run_steps: int, rng: np.random.Generator
) -> dict[str, tuple[int, float]]:
    """Return the (partition, delay) that each policy chooses, except the oracle."""
    recent_rates = [_compute_past_rate(shared, RECENT_S) for shared in judge.without]
    mean_loads = advice.load_bytes_per_s[:, :run_steps].mean(axis=1)
    delayed = advice.with_delay[0]
    short_delay_bytes = advice.contended_bytes[:, advice.delays_s <= SHORT_DELAY_S].T
    place, partition = divmod(int(np.argmin(short_delay_bytes)), short_delay_bytes.shape[1])
    return {
        "random": (int(rng.integers(len(recent_rates))), 0.0),
        "least loaded": (int(np.argmin(recent_rates)), 0.0),
        "least mean": (int(np.argmin(mean_loads)), 0.0),
        "least loaded, delayed": (int(np.argmin(recent_rates)), delayed.delay_s),
        "correlation": (int(np.argmin(advice.met_load_ratios[:, 0])), 0.0),
        "contention": (advice.partitions.index(advice.without_delay[0].partition), 0.0),
        "contention, short delay": (partition, float(advice.delays_s[place])),
        "contention, delayed": (advice.partitions.index(delayed.partition), delayed.delay_s),
    }


def choose_optimum(judge: Judge, delays_s: Reals) -> tuple[int, float]:
    """Return the candidate (partition, delay) with the lowest simulated contention."""
    places = [(number, float(delay)) for delay in delays_s for number in range(len(judge.mix.partitions))]
    return min(places, key=lambda place: judge.outcome(*place)["contended_ratio"])


def _evaluate_policies(
    name: str, setting: Setting, judge: Judge, seed: int, number: int
) -> Iterator[dict[str, object]]:
    """Yield the outcome of every policy in one mix; the delayed oracle only in the usual setting."""
    rng, choice_rng = (np.random.default_rng([seed, number, purpose]) for purpose in (_KNOWN, _LOT))
    demand, partitions = observe_mix(judge.mix, judge.without, setting, rng)
    advice = advise(demand, partitions, ADVICE)
    places = choose_placements(judge, advice, round(judge.mix.new.duration_s / advice.step_s), choice_rng)
    places["oracle"] = choose_optimum(judge, np.zeros(1))
    if name == USUAL:
        delays = np.arange(0.0, ADVICE.max_delay_s + 1.0, ORACLE_STEP_S)
        places["oracle, delayed"] = choose_optimum(judge, delays)
    for policy, (partition, delay_s) in places.items():
        outcome = judge.outcome(partition, delay_s)
        yield {"setting": name, "mix": number, "policy": policy, "partition": partition, "delay_s": delay_s, **outcome}


# ---- the study


#: number of simulated mixes per setting, and seeds
StudyParams = SeedParams


@dataclass(frozen=True, slots=True)
class Results:
    """One row per setting, mix and policy.

    Columns: setting, mix, policy, partition, delay_s, contended_ratio, io_slowdown, others_slowdown (see `Judge`).
    """

    params: StudyParams
    runs: pl.DataFrame


def study(params: StudyParams, report_progress: ReportProgress = ignore_progress) -> Results:
    """Simulate all mixes; the results do not depend on the number of processes."""
    mixes = map_work_items(
        partial(evaluate_mix, params.seed), range(params.seed_count), params.worker_count, report_progress
    )
    return Results(params, pl.concat(mixes))


def evaluate_mix(seed: int, number: int) -> pl.DataFrame:
    """Evaluate one mix in every setting; settings that differ only in the scheduler's knowledge share simulations."""
    judges: dict[tuple[object, ...], Judge] = {}
    rows: list[dict[str, object]] = []
    for name, (_, setting) in SETTINGS.items():
        if setting.mix_key not in judges:
            mix = draw_mix(setting, seed, number)
            judges[setting.mix_key] = Judge(mix, setting.seek_loss_ratio, ADVICE.max_delay_s)
        rows += _evaluate_policies(name, setting, judges[setting.mix_key], seed, number)
    return pl.DataFrame(rows)


# ---- summary


def compare_policies(results: Results, rival: str) -> pl.DataFrame:
    """Compare each policy with a rival, by setting.

    Columns: setting, policy; wins, ties, losses: mixes with fewer, equal and more contended bytes; to_rival: total
    contended bytes relative to the rival; contended_ratio, io_slowdown, others_slowdown, delay_s: means;
    contended_count: mixes with contention under any policy.
    """
    runs = results.runs
    base = runs.filter(pl.col("policy") == rival).select("setting", "mix", rival="contended_ratio")
    difference = pl.col("contended_ratio") - pl.col("rival")
    return (
        runs.join(base, on=["setting", "mix"], maintain_order="left")
        .with_columns(is_contended=(pl.col("contended_ratio").abs() > EQUAL_RATIO).any().over("setting", "mix"))
        .group_by("setting", "policy", maintain_order=True)
        .agg(
            wins=(difference < -EQUAL_RATIO).sum(),
            ties=(difference.abs() <= EQUAL_RATIO).sum(),
            losses=(difference > EQUAL_RATIO).sum(),
            to_rival=pl.col("contended_ratio").sum() / pl.col("rival").sum(),
            contended_ratio=pl.col("contended_ratio").mean(),
            io_slowdown=pl.col("io_slowdown").mean(),
            others_slowdown=pl.col("others_slowdown").mean(),
            delay_s=pl.col("delay_s").mean(),
            contended_count=pl.col("is_contended").sum(),
        )
    )
