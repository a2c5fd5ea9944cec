"""Draw sites, run every method, and keep one row per signature."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import ceil
from pathlib import Path

import polars as pl

from iosig.studies.signatures import PARTS
from iosig.studies.signatures.bounds import SCHEMA as BOUNDS, compute_bounds
from iosig.studies.signatures.edison import EdisonSetting, Traffic
from iosig.studies.signatures.families import ALONE, FAMILIES, FOREIGN_LEVELS, REAL, REAL_PIECE_HOURS
from iosig.studies.signatures.injected import FamilySetting
from iosig.studies.signatures.methods import LACKING, METHODS, ORACLES, SWEEPS, Method
from iosig.studies.signatures.published import (
    ScalingSetting,
    build_default_setting,
    list_queries,
    list_scaling_queries,
)
from iosig.studies.signatures.scores import append_best, score_signatures, summarize_runs
from iosig.studies.signatures.sites import DRIFT_RATIO, LEVELS, SiteSetting, derive_seed
from iosig.studies.signatures.timing import SCHEMA as TIMES, measure_times
from iosig.studies.work_items import ReportProgress, ignore_progress, map_work_items
from iosig.transforms.signatures.methods import DEFAULT_METHODS
from iosig.transforms.synthetic.workload import Direction

#: variations of computing times between runs: none, the study's, and up to the default of simulated sites
DRIFTS = (0.0, DRIFT_RATIO, 0.006, 0.015)
#: level at which single parameters are varied
_MIDDLE = "busy"
#: levels of the drift experiment
_DRIFTING = ("calm",)
#: prefix of a family's name in the name of its experiment
FAMILY = "family "
#: prefix of a family's name in experiments on the source of samples, and the sources: total traffic, a run's own
#: bytes, and own bytes with known background
COUNTED = "counted "
SHARED, OWN, OWN_AND_OTHERS = 0.0, 1.0, 2.0
#: seeds per piece of measured traffic, relative to `seed_count`
_SEEDS_BY_PIECE = 0.25


@dataclass(frozen=True, slots=True)
class StudyParams:
    """Sample sizes, and the results to compute.

    seed_count: sites per setting (20 or more for published results). worker_count: processes, one per core if None.
    polls: measured polls (Edison) in any supported format; None leaves them out. parts: results to compute, all if
    empty. families: families to draw, all if empty. days: in which each application runs ten times.
    """

    seed_count: int = 20
    seed: int = 0
    worker_count: int | None = None
    polls: Path | None = None
    parts: tuple[str, ...] = ()
    families: tuple[str, ...] = ()
    days: float = SiteSetting().days

    def wants(self, part: str) -> bool:
        """Whether a result is to be computed."""
        return part in (self.parts or PARTS)


@dataclass(frozen=True, slots=True)
class Results:
    """Scores of all signatures, times of the methods, and accuracy bounds.

    answers: one row per experiment, value, level, seed, application and method, with the columns of
    `scores.SCHEMA`; NULL without a signature. Experiments: levels; wavelet_level, gamma, kappa (of
    `iosi_filtered`); drift; faults; edison; `FAMILY` or `COUNTED` and a family's name; those of `published`. value: of
    the parameter, index of the measured piece, or source of the samples; 0 if nothing varies. times: see
    `timing.measure_times`; they depend on the machine. bounds: see `bounds.compute_bounds`.
    """

    params: StudyParams
    methods: tuple[Method, ...]
    answers: pl.DataFrame
    times: pl.DataFrame
    bounds: pl.DataFrame

    def select(self, experiment: str) -> pl.DataFrame:
        """Return the rows of `answers` that belong to one experiment."""
        return self.answers.filter(pl.col("experiment") == experiment)


@dataclass(frozen=True, slots=True)
class WorkItem:
    """A site to draw, and its evaluations as (experiment, value, method)."""

    setting: SiteSetting | EdisonSetting | FamilySetting | ScalingSetting
    level: str
    number: int
    seed: int
    queries: tuple[tuple[str, float, Method], ...]


def study(
    params: StudyParams, methods: Sequence[Method] = METHODS, report_progress: ReportProgress = ignore_progress
) -> Results:
    """Draw all sites, run the methods, and return their results in a fixed order."""
    answers = pl.concat(
        map_work_items(evaluate_item, list(build_items(params, methods)), params.worker_count, report_progress)
    )
    # after the pool has finished, so that the times are undisturbed
    times = measure_times(params.seed) if params.wants("times") else pl.DataFrame(schema=TIMES)
    bounds = compute_bounds(DRIFTS, params.seed) if params.wants("drift") else pl.DataFrame(schema=BOUNDS)
    return Results(params, tuple(methods), answers, times, bounds)


def build_items(params: StudyParams, methods: Sequence[Method]) -> Iterator[WorkItem]:
    """Yield the work items, the longest ones first."""
    traffic = None if params.polls is None else Traffic.read(params.polls)
    if params.wants("families") or params.wants("counted"):
        yield from _build_family_items(params, methods)
    if traffic is not None and params.wants("families") and params.polls is not None:
        yield from _build_real_items(params, methods)
    for number in range(params.seed_count):
        seed = derive_seed(params.seed, number)
        if traffic is not None and not params.parts:
            queries = tuple(("edison", 0.0, method) for method in methods)
            yield WorkItem(EdisonSetting(traffic), "edison", number, seed, queries)
        for level, setting, queries in _list_site_settings(params, methods):
            yield WorkItem(setting, level, number, seed, queries)
        if params.wants("published"):
            for level in LEVELS:
                scaling = ScalingSetting(build_default_setting(level, params.days))
                yield WorkItem(scaling, level, number, seed, list_scaling_queries(methods))


def _list_site_settings(
    params: StudyParams, methods: Sequence[Method]
) -> Iterator[tuple[str, SiteSetting, tuple[tuple[str, float, Method], ...]]]:
    """Yield each setting of a site with its level and all its queries, so that no site is drawn twice."""
    for level, times in LEVELS.items():
        usual_setting = SiteSetting(foreign_level=times, days=params.days)
        swept = DRIFTS if params.wants("drift") and level in _DRIFTING else ()
        default_drift = build_default_setting(level, params.days).drift_ratio
        for drift in dict.fromkeys((*swept, usual_setting.drift_ratio, default_drift)):
            queries = [("drift", drift, method) for method in methods if drift in swept and not method.is_slow]
            if drift == usual_setting.drift_ratio:
                queries += _list_usual_queries(params, methods, level)
            if drift == default_drift and params.wants("published"):
                queries += list_queries(methods, level)
            if queries:
                yield level, replace(usual_setting, drift_ratio=drift), tuple(queries)
        if params.wants("faults") and level == _MIDDLE:
            yield level, replace(usual_setting, fault_level=1.0), tuple(("faults", 1.0, method) for method in methods)


def _build_family_items(params: StudyParams, methods: Sequence[Method]) -> Iterator[WorkItem]:
    """Yield the items of each family at each level, by source of the samples."""
    calm = next(iter(FOREIGN_LEVELS))
    drawn = [family for family in FAMILIES if family.name in params.families or not params.families]
    alone_pairs = [(ALONE, calm)] if params.wants("counted") else []
    for number, (family, level) in product(range(params.seed_count), [*alone_pairs, *product(drawn, FOREIGN_LEVELS)]):
        yield from _build_site_items(FamilySetting(family, level), 0.0, number, params, methods)


def _build_real_items(params: StudyParams, methods: Sequence[Method]) -> Iterator[WorkItem]:
    """Yield the items of measured traffic, by piece and direction, repeated to cover the seeds."""
    assert params.polls is not None
    directions: tuple[Direction, ...] = ("write", "read")
    pieces = [
        piece
        for direction in directions
        for piece in Traffic.read(params.polls, direction).split_hours(REAL_PIECE_HOURS)
    ]
    for number in range(ceil(params.seed_count * _SEEDS_BY_PIECE)):
        for (place, piece), level in product(enumerate(pieces), FOREIGN_LEVELS):
            setting = FamilySetting(REAL, level, real=piece)
            yield from _build_site_items(setting, float(place), number * len(pieces) + place, params, methods)


def _build_site_items(
    setting: FamilySetting, value: float, number: int, params: StudyParams, methods: Sequence[Method]
) -> Iterator[WorkItem]:
    """Yield a site's items by source of the samples, if they have queries."""
    name, seed = setting.family.name, derive_seed(params.seed, number)
    queries: dict[float, list[tuple[str, float, Method]]] = {SHARED: [], OWN: [], OWN_AND_OTHERS: []}
    if params.wants("families") and setting.family != ALONE:
        queries[SHARED] += [(f"{FAMILY}{name}", value, method) for method in (*methods, LACKING) if not method.is_slow]
        queries[OWN] += [(f"{FAMILY}{name}", value, method) for method in ORACLES]
    if params.wants("counted") and setting.real is None:
        default_methods = [method for method in methods if method.name in DEFAULT_METHODS]
        for source in queries:
            queries[source] += [(f"{COUNTED}{name}", source, method) for method in default_methods]
        queries[OWN] += [(f"{COUNTED}{name}", OWN, method) for method in ORACLES]
    for source, source_queries in queries.items():
        source_setting = replace(setting, is_alone_seen=source == OWN, is_counted=source == OWN_AND_OTHERS)
        if source_queries:
            yield WorkItem(source_setting, setting.level, number, seed, tuple(source_queries))


def _list_usual_queries(params: StudyParams, methods: Sequence[Method], level: str) -> list[tuple[str, float, Method]]:
    """Return the queries on a level's default site."""
    queries = [("levels", 0.0, method) for method in methods] if params.wants("levels") else []
    if params.wants("sweeps") and level == _MIDDLE:
        queries += [(sweep.name, value, method) for sweep in SWEEPS for value, method in sweep.methods()]
    return queries


def evaluate_item(item: WorkItem) -> pl.DataFrame:
    """Score each application and method of one work item."""
    samples = item.setting.draw(item.seed)
    summaries = summarize_runs(samples)
    answers: dict[Method, pl.DataFrame] = {}
    frames = []
    for experiment, value, method in item.queries:
        if method not in answers:
            answers[method] = score_signatures(samples, method.name, method.extract(samples.sets), summaries)
        labels = {"experiment": experiment, "value": value, "level": item.level, "seed": item.number}
        frames.append(answers[method].select(*(pl.lit(label).alias(name) for name, label in labels.items()), pl.all()))
    rows = pl.concat(frames)
    by = ("experiment", "value")
    return pl.concat([append_best(experiment_rows) for _, experiment_rows in rows.group_by(by, maintain_order=True)])
