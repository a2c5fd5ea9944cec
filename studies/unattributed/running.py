"""The study itself: plants applications, looks for them, and ranks jobs without a signature."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
import polars as pl

from iosig.studies.attribution.running import against
from iosig.studies.attribution.ways import attribution, known_jobs, likely_bytes, rest_shared
from iosig.studies.pieces import Told, nobody, worked
from iosig.studies.real_day import Day
from iosig.studies.sites import FAMILIES, LEVELS, Known, Seen, Transfers, seen, signed, started
from iosig.studies.study import DayParams
from iosig.studies.unattributed import planted, real
from iosig.transforms.arrays import Reals

#: as the night knows what others moved, and if that were known exactly of more and more of them
ATTRIBUTED, SIGNED, LOGGED = "as attributed", "known of jobs with a signature", "known of all logged jobs"


#: how much is drawn: sites of each family and level, and a real day
StudyParams = DayParams


@dataclass(frozen=True, slots=True)
class Results:
    """What came of it.

    patterns: what `planted.held` says of each site and direction, if so much is known of what others moved. tops: in
    how many minutes of more than 1 GB/s the job that moved most is among the first three (hits, of asked) by each way.
    days: the same of a real day with decoys, a row each draw; runs: its runs, and what is told of them.
    """

    params: StudyParams
    patterns: pl.DataFrame
    tops: pl.DataFrame
    runs: pl.DataFrame
    days: pl.DataFrame


def study(params: StudyParams, told: Told = nobody) -> Results:
    """Draw and judge all sites, and a real day if there is one."""
    pieces = list(product(FAMILIES, LEVELS, params.seeds))
    found = worked(judged, pieces, params.worker_count, told)
    runs, days = pl.DataFrame(), pl.DataFrame()
    if params.polls is not None and params.log is not None:
        day = Day.read(params.polls, params.log)
        runs, days = real.told(day), real.tried(day, range(params.seed, params.seed + real.DRAWS))
    patterns, tops = ([each[place] for each in found] for place in (0, 1))
    return Results(params, pl.concat(patterns, how="diagonal_relaxed"), pl.concat(tops), runs, days)


def judged(piece: tuple[str, str, int]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return what is found on one site: rows of `patterns` and of `tops`."""
    family, level, seed = piece
    site = planted.drawn(family, level, seed)
    jobs = started(site, [planted.NOBODY])
    patterns, tops = [], []
    for direction, one in seen(site, [planted.NOBODY]).items():
        key = {"family": family, "level": level, "seed": seed, "direction": direction}
        known = signed(one)
        given = attribution(one, known)
        for name, (left, step_s) in _lefts(one, known, given, Transfers.of(site, jobs, direction)):
            found = planted.found_in(left, step_s, one.logged)
            patterns += [key | {"known": name} | row for row in planted.held(site, direction, found, step_s)]
        tops += [key | {"way": way} | _tops(one, known, of) for way, of in _ways(one, known, given).items()]
    schema = {"is_right": pl.Boolean}
    return pl.DataFrame(patterns, schema_overrides=schema, infer_schema_length=None), pl.DataFrame(tops)


def _lefts(one: Seen, known: Known, given: Reals, moved: Transfers) -> Iterator[tuple[str, tuple[Reals, float]]]:
    """Yield what is left of a site's traffic, in steps, and how long a step is, the more the less is known."""
    is_signed = known_jobs(one.logged, known)
    yield ATTRIBUTED, planted.left_of(one, given)
    yield SIGNED, planted.left_if_known(one, moved, is_signed)
    yield LOGGED, planted.left_if_known(one, moved, np.ones_like(is_signed))


def _ways(one: Seen, known: Known, given: Reals) -> dict[str, Reals]:
    """Return what each way gives, by job and minute."""
    return {
        "signatures alone": given,
        "rest shared equally": rest_shared(one, known),
        "rest by likely rates": given + likely_bytes(one, given),
    }


def _tops(one: Seen, known: Known, given: Reals) -> dict[str, float]:
    counted = against(one, given, known_jobs(one.logged, known))
    return {name: counted[name] for name in ("hits", "asked")}
