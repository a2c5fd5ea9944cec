"""The study itself: draws sites, asks every method, and keeps a row for each signature."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import ceil
from pathlib import Path

import polars as pl

from iosig.studies.pieces import Told, nobody, worked
from iosig.studies.signatures import PARTS
from iosig.studies.signatures.bounds import SCHEMA as BOUNDS, bounds
from iosig.studies.signatures.edison import EdisonSetting, Traffic
from iosig.studies.signatures.families import ALONE, FAMILIES, FOREIGN_LEVELS, REAL, REAL_PIECE_HOURS
from iosig.studies.signatures.injected import FamilySetting
from iosig.studies.signatures.methods import LACKING, METHODS, ORACLES, SWEEPS, Method
from iosig.studies.signatures.scores import judges_of, scored, with_chosen
from iosig.studies.signatures.sites import DRIFT_RATIO, LEVELS, SiteSetting, seed_of
from iosig.studies.signatures.timing import SCHEMA as TIMES, timed
from iosig.transforms.signatures.methods import DEFAULT_METHODS
from iosig.transforms.synthetic.workload import Direction

#: how differently runs compute: none, the study's, and up to the simulated site's own default
DRIFTS = (0.0, DRIFT_RATIO, 0.006, 0.015)
#: the level at which one parameter at a time is varied
_MIDDLE = "busy"
#: the levels at which runs are made to differ
_DRIFTING = ("calm",)
#: what comes before a family's name in its experiment
FAMILY = "family "
#: what comes before a family's name where it is asked as servers tell of it: of all traffic, of a run's own bytes, and
#: of these with what others moved beside them
COUNTED = "counted "
SHARED, OWN, OWN_AND_OTHERS = 0.0, 1.0, 2.0
#: of the seeds, so many fall to each piece of real traffic
_SEEDS_BY_PIECE = 0.25


@dataclass(frozen=True, slots=True)
class StudyParams:
    """How much is drawn.

    seed_count: sites of each setting (at least 20 for what is published). worker_count: processes, as many as there
    are cores if None; the results are the same for any. polls: those of a real file system (Edison), in any format
    that can be landed; None leaves them out. parts: which results are wanted, all if there are none. days: in which
    each application runs ten times.
    """

    seed_count: int = 20
    seed: int = 0
    worker_count: int | None = None
    polls: Path | None = None
    parts: tuple[str, ...] = ()
    days: float = SiteSetting().days

    def wants(self, part: str) -> bool:
        """Return whether a result is wanted."""
        return part in (self.parts or PARTS)


@dataclass(frozen=True, slots=True)
class Results:
    """What came of it.

    answers: a row for each experiment, value, level, seed, application and method, with the columns of
    `scores.SCHEMA`; NULL where there is no signature. Experiments: levels; wavelet_level, gamma, kappa (of `iosi`);
    drift; faults; edison; `FAMILY` or `COUNTED` and a family's name; value is that of the parameter, the number of the
    piece of real traffic, or what servers tell, 0 where nothing is varied. times: see `timing.timed`; they are the
    machine's, and differ from run to run. bounds: see `bounds.bounds`, where runs are made to differ.
    """

    params: StudyParams
    methods: tuple[Method, ...]
    answers: pl.DataFrame
    times: pl.DataFrame
    bounds: pl.DataFrame

    def of(self, experiment: str) -> pl.DataFrame:
        """Return the answers of one experiment."""
        return self.answers.filter(pl.col("experiment") == experiment)


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of work: one site, and what is asked of it as (experiment, value, method)."""

    setting: SiteSetting | EdisonSetting | FamilySetting
    level: str
    number: int
    seed: int
    asked: tuple[tuple[str, float, Method], ...]


def study(params: StudyParams, methods: Sequence[Method] = METHODS, told: Told = nobody) -> Results:
    """Draw all sites, ask the methods, and return their answers in order."""
    answers = pl.concat(worked(answered, list(pieces(params, methods)), params.worker_count, told))
    # when nothing else of ours is at work
    times = timed(params.seed) if params.wants("times") else pl.DataFrame(schema=TIMES)
    known = bounds(DRIFTS, params.seed) if params.wants("drift") else pl.DataFrame(schema=BOUNDS)
    return Results(params, tuple(methods), answers, times, known)


def pieces(params: StudyParams, methods: Sequence[Method]) -> Iterator[Piece]:
    """Yield the work, the longest pieces first."""
    traffic = None if params.polls is None else Traffic.read(params.polls)
    if params.wants("families") or params.wants("counted"):
        yield from _families(params, methods)
    if traffic is not None and params.wants("families") and params.polls is not None:
        yield from _real(params, methods)
    for number in range(params.seed_count):
        seed = seed_of(params.seed, number)
        if traffic is not None and not params.parts:
            asked = tuple(("edison", 0.0, method) for method in methods)
            yield Piece(EdisonSetting(traffic), "edison", number, seed, asked)
        for level, setting, asked in _sites(params, methods):
            yield Piece(setting, level, number, seed, asked)


def _sites(
    params: StudyParams, methods: Sequence[Method]
) -> Iterator[tuple[str, SiteSetting, tuple[tuple[str, float, Method], ...]]]:
    """Yield each setting of a site with its level and what is asked of it: no site is drawn twice."""
    for level, times in LEVELS.items():
        usual = SiteSetting(foreign_level=times, days=params.days)
        drifts = DRIFTS if params.wants("drift") and level in _DRIFTING else (usual.drift_ratio,)
        for drift in drifts:
            differing = methods if len(drifts) > 1 else ()
            asked = [("drift", drift, method) for method in differing if not method.is_slow]
            if drift == usual.drift_ratio:
                asked += _of_usual(params, methods, level)
            if asked:
                yield level, replace(usual, drift_ratio=drift), tuple(asked)
        if params.wants("faults") and level == _MIDDLE:
            yield level, replace(usual, fault_level=1.0), tuple(("faults", 1.0, method) for method in methods)


def _families(params: StudyParams, methods: Sequence[Method]) -> Iterator[Piece]:
    """Yield each family at each level, by what servers tell of it."""
    calm = next(iter(FOREIGN_LEVELS))
    alone = [(ALONE, calm)] if params.wants("counted") else []
    for number, (family, level) in product(range(params.seed_count), [*alone, *product(FAMILIES, FOREIGN_LEVELS)]):
        yield from _told(FamilySetting(family, level), 0.0, number, params, methods)


def _real(params: StudyParams, methods: Sequence[Method]) -> Iterator[Piece]:
    """Yield real traffic, piece by piece, reads and writes apart, as often as it takes for the seeds."""
    assert params.polls is not None
    directions: tuple[Direction, ...] = ("write", "read")
    pieces = [one for way in directions for one in Traffic.read(params.polls, way).pieces(REAL_PIECE_HOURS)]
    for number in range(ceil(params.seed_count * _SEEDS_BY_PIECE)):
        for (place, piece), level in product(enumerate(pieces), FOREIGN_LEVELS):
            setting = FamilySetting(REAL, level, real=piece)
            yield from _told(setting, float(place), number * len(pieces) + place, params, methods)


def _told(
    setting: FamilySetting, value: float, number: int, params: StudyParams, methods: Sequence[Method]
) -> Iterator[Piece]:
    """Yield a site as its polls are, without others' bytes, and with these beside its own, as far as it is asked so."""
    name, seed = setting.family.name, seed_of(params.seed, number)
    asked: dict[float, list[tuple[str, float, Method]]] = {SHARED: [], OWN: [], OWN_AND_OTHERS: []}
    if params.wants("families") and setting.family != ALONE:
        asked[SHARED] += [(f"{FAMILY}{name}", value, one) for one in (*methods, LACKING) if not one.is_slow]
        asked[OWN] += [(f"{FAMILY}{name}", value, one) for one in ORACLES]
    if params.wants("counted") and setting.real is None:
        usual = [one for one in methods if one.name in DEFAULT_METHODS]
        for way in asked:
            asked[way] += [(f"{COUNTED}{name}", way, one) for one in usual]
        asked[OWN] += [(f"{COUNTED}{name}", OWN, one) for one in ORACLES]
    for way, each in asked.items():
        told = replace(setting, is_alone_seen=way == OWN, is_counted=way == OWN_AND_OTHERS)
        if each:
            yield Piece(told, setting.level, number, seed, tuple(each))


def _of_usual(params: StudyParams, methods: Sequence[Method], level: str) -> list[tuple[str, float, Method]]:
    """Return what is asked of a level's usual site."""
    asked = [("levels", 0.0, method) for method in methods] if params.wants("levels") else []
    if params.wants("sweeps") and level == _MIDDLE:
        asked += [(sweep.name, value, method) for sweep in SWEEPS for value, method in sweep.methods()]
    return asked


def answered(piece: Piece) -> pl.DataFrame:
    """Return a row for each application and method of one piece."""
    drawn = piece.setting.drawn(piece.seed)
    judges = judges_of(drawn)
    answers: dict[Method, pl.DataFrame] = {}
    frames = []
    for experiment, value, method in piece.asked:
        if method not in answers:
            answers[method] = scored(drawn, method.name, method.extract(drawn.sets), judges)
        labels = {"experiment": experiment, "value": value, "level": piece.level, "seed": piece.number}
        frames.append(answers[method].select(*(pl.lit(label).alias(name) for name, label in labels.items()), pl.all()))
    told = pl.concat(frames)
    by = ("experiment", "value")
    return pl.concat([with_chosen(own) for _, own in told.group_by(by, maintain_order=True)])
