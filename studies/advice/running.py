"""The study itself: draws mixes of running applications, places a new one by every policy, and simulates what comes.

The judge is `iosig.transforms.synthetic.contention`, in which transfers share a partition and delay whatever follows
them; the advice knows nothing of that but the demands.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import polars as pl

from iosig.studies.pieces import Told, nobody, worked
from iosig.studies.study import SeedParams
from iosig.transforms.advice import Advice, AdviceParams, Partition, Running, advise
from iosig.transforms.arrays import Bools, Reals, offsets_of
from iosig.transforms.demands import Demand
from iosig.transforms.synthetic.contention import Chains, SharedBandwidth, SharingResult, simulate_sharing
from iosig.transforms.synthetic.site import signature
from iosig.transforms.synthetic.workload import PROFILE, Application, Burst

#: when the new application is placed: by then everybody who runs has begun [s]
NOW_S = 7200.0
#: what a scheduler looks back on: for the present load, and for the load that no signature explains [s]
RECENT_S, PAST_S = 300.0, 1800.0
#: of the advice's grid: half as fine as usual, which changes no choice to speak of [s]
GRID_S = 4.0
ADVICE = AdviceParams(step_s=GRID_S)
#: delays that the oracle tries are so many seconds apart
ORACLE_STEP_S = 300.0
#: what is also tried: that no start waits for longer than this, a part of what advice offers [s]
SHORT_DELAY_S = 600.0
#: contended bytes that differ by less than this share of the application's are equal
EQUAL_RATIO = 1e-4
#: what is judged is what begins while the new application may run: so much longer than it takes alone
_LONGER_RATIO = 1.25
#: what the streams of random numbers are for
_MIX, _PACE, _KNOWN, _LOT = range(4)

# ---- settings


@dataclass(frozen=True, slots=True)
class Applications:
    """What applications are drawn from, each evenly, the period evenly in its logarithm.

    load_ratio: what a partition's runs come to on average, as a share of its capacity, more than one of them in any
    case. period_s, busy_ratios: from burst to burst, and the share of it that a burst takes alone. peak_bytes_per_s: of
    a burst. run_s: how long a run takes, about.
    """

    load_ratio: tuple[float, float] = (0.3, 0.7)
    period_s: tuple[float, float] = (60.0, 1200.0)
    busy_ratios: tuple[float, float] = (0.05, 0.35)
    peak_bytes_per_s: tuple[float, float] = (0.5e9, 2.5e9)
    run_s: tuple[float, float] = (1800.0, 7200.0)


@dataclass(frozen=True, slots=True)
class Setting:
    """How a mix is drawn, and what is known of it.

    drift_ratio: see `workload.Workload`. seek_loss_ratio: see `contention.Pipe`. is_followed: of each running job it is
    known when its last burst began; else only when the job did. position_error_s, volume_error_ratio: standard
    deviations of what the advice is told of each running application, and of every signature (in the logarithm); it
    does not know of them. unknown_ratio: running jobs without a signature.
    """

    applications: Applications = field(default_factory=Applications)
    drift_ratio: float = 0.015
    seek_loss_ratio: float = 0.0
    is_followed: bool = True
    position_error_s: float = 0.0
    volume_error_ratio: float = 0.0
    unknown_ratio: float = 0.0

    @property
    def drawn_by(self) -> tuple[object, ...]:
        """What the mix itself depends on."""
        return (self.applications, self.drift_ratio, self.seek_loss_ratio)


#: IOSI, section 5.3: applications keep their I/O to 5 to 10 percent of the run
_BRIEF = Applications(busy_ratios=(0.05, 0.10))
_IDLE = Applications(load_ratio=(0.0, 0.5))
USUAL = "usual"
#: the settings by name, with what they are
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
    "brief bursts": ("I/O takes 5 to 10 % of each job's time alone, so there are more jobs", Setting(_BRIEF)),
    "idle partitions": ("loads of 0 to 50 %: some partitions are almost idle", Setting(_IDLE)),
    "seeks": ("each concurrent transfer reduces a transfer's speed by a quarter", Setting(seek_loss_ratio=0.25)),
}
#: the policies by name, with what they are
POLICIES = {
    "random": "any partition",
    "least loaded": f"the partition with the lowest load in the last {RECENT_S / 60:.0f} minutes",
    "least mean": "the partition with the lowest expected load during the run, from signatures",
    "least loaded, as late": "`least loaded`, started as late as `contention, delayed`: the effect of waiting alone",
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
    """One run of an application as it will go.

    demand: the application's true signature. offsets_s: where in it each burst begins. start_s: when the run begins;
    wait_s, volume_bytes, peak_bytes_per_s: its transfers, as many for each burst, and a last wait without one.
    """

    demand: Demand
    offsets_s: Reals
    start_s: float
    wait_s: Reals
    volume_bytes: Reals
    peak_bytes_per_s: Reals

    @property
    def volume(self) -> float:
        """What the whole run moves [B]."""
        return float(self.volume_bytes.sum())

    @property
    def duration_s(self) -> float:
        """How long its application runs alone."""
        return len(self.demand.bytes_per_s) * self.demand.step_s


@dataclass(frozen=True, slots=True)
class Mix:
    """Partitions of equal capacity with the runs on each, and the run that is to be placed (it begins at NOW_S)."""

    capacity_bytes_per_s: float
    partitions: tuple[tuple[Run, ...], ...]
    new: Run


def drawn(setting: Setting, seed: int, number: int) -> Mix:
    """Draw a mix: 3 to 8 partitions of 2 to 4 GB/s each, and the runs on them somewhere in their course."""
    rng, paces = (np.random.default_rng([seed, number, purpose]) for purpose in (_MIX, _PACE))
    capacity = rng.uniform(2e9, 4e9)
    partitions = []
    for _ in range(int(rng.integers(3, 9))):
        chosen = list(_applications(setting.applications, capacity, rng))
        elapsed = [rng.uniform(0.0, 0.9) * application.duration_s for application in chosen]
        partitions.append(
            tuple(
                _run(application, NOW_S - passed, setting.drift_ratio, paces)
                for application, passed in zip(chosen, elapsed, strict=True)
            )
        )
    new = _run(_application(setting.applications, rng), NOW_S, setting.drift_ratio, paces)
    return Mix(capacity, tuple(partitions), new)


def _applications(drawn_from: Applications, capacity: float, rng: np.random.Generator) -> Iterator[Application]:
    """Yield applications until they come to a load that is drawn, two at least."""
    wanted = rng.uniform(*drawn_from.load_ratio) * capacity
    load, count = 0.0, 0
    while load < wanted or count < 2:
        application = _application(drawn_from, rng)
        load, count = load + application.volume_bytes("write") / application.duration_s, count + 1
        yield application


def _application(drawn_from: Applications, rng: np.random.Generator) -> Application:
    """Draw an application that computes, then does a burst, again and again; it is at most NOW_S long."""
    every = float(np.exp(rng.uniform(*np.log(drawn_from.period_s))))
    busy, peak = rng.uniform(*drawn_from.busy_ratios), rng.uniform(*drawn_from.peak_bytes_per_s)
    run_s = rng.uniform(*drawn_from.run_s)
    held_s = sum(volume / height for volume, height in PROFILE)
    volume = busy * every * peak / held_s
    # a burst comes after its computing, less what rounding may take of the last one
    bursts = [Burst((cycle + 1 - busy) * every - 1e-6, volume, peak) for cycle in range(max(1, int(run_s / every)))]
    return Application("planted", "", "", 1, len(bursts) * every, tuple(bursts))


def _run(application: Application, start_s: float, drift_ratio: float, rng: np.random.Generator) -> Run:
    """Draw how a run goes: its computing and the speed of its bursts differ as those of the synthetic site do."""
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


# ---- what happens


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of the runs on a partition, in the time that is judged.

    late_bytes: bytes that were not moved by when they would have been alone, of all transfers. io_s, alone_s: time that
    the others spent on I/O, and would have alone. own_io_s, own_alone_s: the new one's.
    """

    late_bytes: float
    io_s: float
    alone_s: float
    own_io_s: float = 0.0
    own_alone_s: float = 0.0


def simulated(runs: tuple[Run, ...], pipe: SharedBandwidth, until_s: float) -> SharingResult:
    """Simulate runs on one partition; each has a channel of its own."""
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


def late_bytes(run: Run, start_s: Reals, shared: SharingResult, channel: int, is_judged: Bools) -> float:
    """Return the bytes of a run's judged transfers that were not moved by when they would have been alone."""
    begun, alone_s = start_s[is_judged], (run.volume_bytes / run.peak_bytes_per_s)[is_judged]
    totals = shared.moved_total_bytes[:, channel]
    moved = np.interp(begun + alone_s, shared.at_s, totals) - np.interp(begun, shared.at_s, totals)
    return float(np.maximum(run.volume_bytes[is_judged] - moved, 0.0).sum())


def judged(runs: tuple[Run, ...], shared: SharingResult, until_s: float, new: int | None = None) -> Outcome:
    """Return what came of all transfers that began from now on and before that time; `new` is the new run's number."""
    late, io_s, alone_s = 0.0, np.zeros(len(runs)), np.zeros(len(runs))
    end = 0
    for number, run in enumerate(runs):
        begin, end = end, end + len(run.wait_s)
        started = shared.start_s[begin:end]
        is_judged = (started >= NOW_S) & (started < until_s) & (run.volume_bytes > 0)
        late += late_bytes(run, started, shared, number, is_judged)
        io_s[number] = float((np.nan_to_num(shared.end_s[begin:end], nan=shared.at_s[-1]) - started)[is_judged].sum())
        alone_s[number] = float((run.volume_bytes / run.peak_bytes_per_s)[is_judged].sum())
    if new is None:
        return Outcome(late, float(io_s.sum()), float(alone_s.sum()))
    mine = float(io_s[new]), float(alone_s[new])
    return Outcome(late, float(io_s.sum()) - mine[0], float(alone_s.sum()) - mine[1], *mine)


class Judge:
    """Simulates a mix with the new run wherever and whenever it is asked to be put, each only once."""

    def __init__(self, mix: Mix, seek_loss_ratio: float, max_delay_s: float) -> None:
        self.mix = mix
        self._pipe = SharedBandwidth(mix.capacity_bytes_per_s, seek_loss_ratio)
        self._until_s = NOW_S + max_delay_s + _LONGER_RATIO * mix.new.duration_s
        self._horizon_s = self._until_s + max_delay_s
        self.without = [simulated(runs, self._pipe, self._horizon_s) for runs in mix.partitions]
        self._usual = [
            judged(runs, shared, self._until_s) for runs, shared in zip(mix.partitions, self.without, strict=True)
        ]
        self._outcomes: dict[tuple[int, float], dict[str, float]] = {}

    def outcome(self, partition: int, delay_s: float) -> dict[str, float]:
        """Return contended_ratio, io_slowdown and others_slowdown of that place.

        Bytes late beyond those without the new run, as a share of its own; its own time for I/O over that alone; the
        others' time for I/O on its partition over that without it.
        """
        place = (partition, delay_s)
        if place not in self._outcomes:
            runs = (*self.mix.partitions[partition], replace(self.mix.new, start_s=NOW_S + delay_s))
            shared = simulated(runs, self._pipe, self._horizon_s)
            found, usual = judged(runs, shared, self._until_s, len(runs) - 1), self._usual[partition]
            self._outcomes[place] = {
                "contended_ratio": (found.late_bytes - usual.late_bytes) / self.mix.new.volume,
                "io_slowdown": found.own_io_s / found.own_alone_s,
                "others_slowdown": _ratio(found.io_s, found.alone_s) / _ratio(usual.io_s, usual.alone_s),
            }
        return self._outcomes[place]


def _ratio(io_s: float, alone_s: float) -> float:
    return io_s / alone_s if alone_s > 0 else 1.0


# ---- what is known


def told(
    mix: Mix, without: list[SharingResult], setting: Setting, rng: np.random.Generator
) -> tuple[Demand, list[Partition]]:
    """Return the new run's signature and the partitions as a scheduler knows them now."""
    partitions = []
    for number, (runs, shared) in enumerate(zip(mix.partitions, without, strict=True)):
        known = []
        ends = np.cumsum([len(run.wait_s) for run in runs])
        for run, end in zip(runs, ends, strict=True):
            begun, ended = shared.start_s[end - len(run.wait_s) : end], shared.end_s[end - 1]
            error_s, height = setting.position_error_s * rng.standard_normal(), _height(setting, rng)
            is_unknown = rng.random() < setting.unknown_ratio
            if not (is_unknown or ended <= NOW_S):
                course = _course(run, begun) if setting.is_followed else _Course(NOW_S - run.start_s)
                known.append(course.of(f"job {end}", _scaled(run.demand, height), error_s))
        seen = _seen_bytes_per_s(shared, PAST_S)
        explained = sum(_past_bytes_per_s(running) for running in known)
        partitions.append(
            Partition(f"partition {number}", mix.capacity_bytes_per_s, max(0.0, seen - explained), tuple(known))
        )
    return _scaled(mix.new.demand, _height(setting, rng)), partitions


@dataclass(frozen=True, slots=True)
class _Course:
    """How far a run has come; from its bursts, if any was seen: see `Running`."""

    elapsed_s: float
    position_error_s: float | None = None
    tempo: float = 1.0

    def of(self, name: str, demand: Demand, error_s: float) -> Running:
        """Return what the advice is told, wrong by an error of the position."""
        return Running(name, demand, self.elapsed_s + error_s, self.position_error_s, self.tempo)


def _course(run: Run, begun_s: Reals) -> _Course:
    """Return where a run's last burst says that it is, and how fast it came there from the job's start."""
    firsts = begun_s[:-1][:: len(PROFILE)]
    seen = int(np.sum(firsts <= NOW_S))
    if not seen:
        return _Course(NOW_S - run.start_s)
    place, since_s = float(run.offsets_s[seen - 1]), NOW_S - float(firsts[seen - 1])
    tempo = place / (float(firsts[seen - 1]) - run.start_s)
    return _Course(place + since_s * tempo, AdviceParams().start_error_s, tempo)


def _height(setting: Setting, rng: np.random.Generator) -> float:
    return float(np.exp(setting.volume_error_ratio * rng.standard_normal()))


def _scaled(demand: Demand, height: float) -> Demand:
    return replace(demand, bytes_per_s=demand.bytes_per_s * height)


def _seen_bytes_per_s(shared: SharingResult, past_s: float) -> float:
    return float(shared.volumes(np.array([NOW_S - past_s, NOW_S])).sum()) / past_s


def _past_bytes_per_s(running: Running) -> float:
    """Return what a signature says of the time that a scheduler looks back on."""
    volumes = np.concatenate([[0.0], np.cumsum(running.demand.bytes_per_s)])
    places = np.array([running.elapsed_s - PAST_S, running.elapsed_s])
    return float(np.diff(np.interp(places, np.arange(len(volumes)), volumes))[0]) / PAST_S


# ---- policies


def placed(judge: Judge, advice: Advice, run_steps: int, rng: np.random.Generator) -> dict[str, tuple[int, float]]:
    """Return where (partition, delay) each policy but the oracle puts the new run."""
    now = [_seen_bytes_per_s(shared, RECENT_S) for shared in judge.without]
    mean = advice.load_bytes_per_s[:, :run_steps].mean(axis=1)
    delayed = advice.with_delay[0]
    short = advice.contended_bytes[:, advice.delays_s <= SHORT_DELAY_S].T
    place, partition = divmod(int(np.argmin(short)), short.shape[1])
    return {
        "random": (int(rng.integers(len(now))), 0.0),
        "least loaded": (int(np.argmin(now)), 0.0),
        "least mean": (int(np.argmin(mean)), 0.0),
        "least loaded, as late": (int(np.argmin(now)), delayed.delay_s),
        "correlation": (int(np.argmin(advice.met_load_ratios[:, 0])), 0.0),
        "contention": (advice.partitions.index(advice.without_delay[0].partition), 0.0),
        "contention, short delay": (partition, float(advice.delays_s[place])),
        "contention, delayed": (advice.partitions.index(delayed.partition), delayed.delay_s),
    }


def oracle(judge: Judge, delays_s: Reals) -> tuple[int, float]:
    """Return the place and delay with the least contention of all that are tried."""
    places = [(number, float(delay)) for delay in delays_s for number in range(len(judge.mix.partitions))]
    return min(places, key=lambda place: judge.outcome(*place)["contended_ratio"])


def _rows(name: str, setting: Setting, judge: Judge, seed: int, number: int) -> Iterator[dict[str, object]]:
    """Yield what every policy comes to in one mix; the oracle with delays in the usual setting alone."""
    rng, lot = (np.random.default_rng([seed, number, purpose]) for purpose in (_KNOWN, _LOT))
    demand, partitions = told(judge.mix, judge.without, setting, rng)
    advice = advise(demand, partitions, ADVICE)
    places = placed(judge, advice, round(judge.mix.new.duration_s / advice.step_s), lot)
    places["oracle"] = oracle(judge, np.zeros(1))
    if name == USUAL:
        delays = np.arange(0.0, ADVICE.max_delay_s + 1.0, ORACLE_STEP_S)
        places["oracle, delayed"] = oracle(judge, delays)
    for policy, (partition, delay_s) in places.items():
        found = judge.outcome(partition, delay_s)
        yield {"setting": name, "mix": number, "policy": policy, "partition": partition, "delay_s": delay_s, **found}


# ---- the study


#: how much is simulated: mixes of each setting
StudyParams = SeedParams


@dataclass(frozen=True, slots=True)
class Results:
    """What came of it: a row for each setting, mix and policy.

    Columns: setting, mix, policy, partition, delay_s, contended_ratio, io_slowdown, others_slowdown (see `Judge`).
    """

    params: StudyParams
    runs: pl.DataFrame


def study(params: StudyParams, told: Told = nobody) -> Results:
    """Simulate all mixes. The same seed gives the same results, with any number of processes."""
    mixes = worked(partial(of_mix, params.seed), range(params.seed_count), params.worker_count, told)
    return Results(params, pl.concat(mixes))


def of_mix(seed: int, number: int) -> pl.DataFrame:
    """Return the rows of one mix in every setting; settings that differ in what is known share its simulations."""
    judges: dict[tuple[object, ...], Judge] = {}
    rows: list[dict[str, object]] = []
    for name, (_, setting) in SETTINGS.items():
        if setting.drawn_by not in judges:
            mix = drawn(setting, seed, number)
            judges[setting.drawn_by] = Judge(mix, setting.seek_loss_ratio, ADVICE.max_delay_s)
        rows += _rows(name, setting, judges[setting.drawn_by], seed, number)
    return pl.DataFrame(rows)


# ---- in short


def compared(results: Results, rival: str) -> pl.DataFrame:
    """Return how each setting's policies do beside one of them.

    Columns: setting, policy; wins, ties, losses: mixes with fewer, as many and more contended bytes; to_rival:
    contended bytes over the rival's, both summed over the mixes; contended_ratio, io_slowdown, others_slowdown,
    delay_s: means; contended_count: mixes in which any partition that a policy took has contention.
    """
    runs = results.runs
    base = runs.filter(pl.col("policy") == rival).select("setting", "mix", rival="contended_ratio")
    less = pl.col("contended_ratio") - pl.col("rival")
    return (
        runs.join(base, on=["setting", "mix"], maintain_order="left")
        .with_columns(is_contended=(pl.col("contended_ratio").abs() > EQUAL_RATIO).any().over("setting", "mix"))
        .group_by("setting", "policy", maintain_order=True)
        .agg(
            wins=(less < -EQUAL_RATIO).sum(),
            ties=(less.abs() <= EQUAL_RATIO).sum(),
            losses=(less > EQUAL_RATIO).sum(),
            to_rival=pl.col("contended_ratio").sum() / pl.col("rival").sum(),
            contended_ratio=pl.col("contended_ratio").mean(),
            io_slowdown=pl.col("io_slowdown").mean(),
            others_slowdown=pl.col("others_slowdown").mean(),
            delay_s=pl.col("delay_s").mean(),
            contended_count=pl.col("is_contended").sum(),
        )
    )
