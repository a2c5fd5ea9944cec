"""The study itself: draws sites, finds signatures, attributes by every way, and holds that to the truth."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
import polars as pl

from iosig.studies import sites as sites_module
from iosig.studies.attribution.hurting import slowed_bursts
from iosig.studies.attribution.ways import WAYS, known_jobs
from iosig.studies.pieces import Told, nobody, worked
from iosig.studies.sites import FAMILIES, LEVELS, MINUTE_S, Seen, made, seen as seen_in, signed
from iosig.studies.study import SeedParams
from iosig.transforms.arrays import Bools, Reals

#: minutes in which less flowed are not asked about [B/s]
LEAST_BYTES_PER_S = 1e9
#: a job that moved less has no relative error to speak of
LEAST_BYTES = 1e9
_TOP = 3


#: how much is drawn: sites of each family and level
StudyParams = SeedParams


@dataclass(frozen=True, slots=True)
class Results:
    """What came of it.

    sites: a row each site, direction and way: bytes and numbers of minutes. jobs: a row each job of a known application
    and way that moved anything to speak of: what it moved, and what it was given. bursts: a row each burst that was
    found: what is said of how much longer it took, and the truth.
    """

    params: StudyParams
    sites: pl.DataFrame
    jobs: pl.DataFrame
    bursts: pl.DataFrame


def study(params: StudyParams, told: Told = nobody) -> Results:
    """Draw and judge all sites."""
    pieces = list(product(FAMILIES, LEVELS, params.seeds))
    found = worked(judged, pieces, params.worker_count, told)
    sites, jobs, bursts = (pl.concat(frames) for frames in zip(*found, strict=True))
    return Results(params, sites, jobs, bursts)


def judged(piece: tuple[str, str, int]) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Return what all ways make of one site: rows of `sites`, of `jobs` and of `bursts`."""
    family, level, seed = piece
    key = {"family": family, "level": level, "seed": seed}
    sites, jobs = [], []
    site = made(family, level, seed, sites_module.DAYS)
    directions = seen_in(site)
    signatures = {direction: signed(seen) for direction, seen in directions.items()}
    for direction, seen in directions.items():
        known = signatures[direction]
        is_known = known_jobs(seen.logged, known)
        for way, (_, give) in WAYS.items():
            given = give(seen, known)
            own = key | {"direction": direction, "way": way}
            sites.append(own | against(seen, given, is_known))
            jobs.append(
                _of_jobs(seen, given, is_known).with_columns(pl.lit(value).alias(name) for name, value in own.items())
            )
    bursts = slowed_bursts(site, directions, signatures).with_columns(
        pl.lit(value).alias(name) for name, value in key.items()
    )
    return pl.DataFrame(sites), pl.concat(jobs), bursts


def against(seen: Seen, given: Reals, is_known: Bools) -> dict[str, float]:
    """Hold bytes by job and minute against the truth."""
    truth = seen.truth_bytes
    right = np.minimum(truth, given)
    hits, known_hits, asked, known_asked = _top(seen, given, is_known)
    return {
        "measured_bytes": float(seen.traffic_bytes.sum()),
        "job_bytes": float(truth.sum()),
        "known_bytes": float(truth[is_known].sum()),
        "known_right_bytes": float(right[is_known].sum()),
        "known_given_bytes": float(given[is_known].sum()),
        "other_right_bytes": float(right[~is_known].sum()),
        "other_given_bytes": float(given[~is_known].sum()),
        "hits": hits,
        "asked": asked,
        "known_hits": known_hits,
        "known_asked": known_asked,
    }


def _top(seen: Seen, given: Reals, is_known: Bools) -> tuple[float, float, float, float]:
    """Return in how many minutes the first three hold the job that moved most, and how many there are.

    The same again of minutes in which that job is of a known application. Where several jobs are given the same, each
    is as likely to be among the first.
    """
    minutes = np.flatnonzero((seen.minutes_bytes > LEAST_BYTES_PER_S * MINUTE_S) & seen.truth_bytes.any(axis=0))
    if not len(minutes):
        return 0.0, 0.0, 0.0, 0.0
    first = seen.truth_bytes[:, minutes].argmax(axis=0)
    here = given[:, minutes]
    own = here[first, np.arange(len(minutes))]
    more, same = (here > own).sum(axis=0), (here == own).sum(axis=0)
    chance = np.where(own > 0, np.clip((_TOP - more) / same, 0.0, 1.0), 0.0)
    of_known = is_known[first]
    return float(chance.sum()), float(chance[of_known].sum()), float(len(minutes)), float(of_known.sum())


def _of_jobs(seen: Seen, given: Reals, is_known: Bools) -> pl.DataFrame:
    moved = seen.truth_bytes.sum(axis=1)
    wanted = is_known & (moved >= LEAST_BYTES)
    return pl.DataFrame({"moved_bytes": moved[wanted], "given_bytes": given[wanted].sum(axis=1)})
