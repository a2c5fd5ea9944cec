"""What it costs to attribute a day of a large site, and all of its 90 days, beside one pass over the same polls.

The site is that of `bench.signatures`: 80,815 jobs of 5,000 applications in 90 days at 2 s, of 96 controllers. Read is
a tenth of what is written, as in `bench.backfill`. Signatures are IOSI's of the same traffic; making them does not
count. What counts is what a night does for a day: runs with their bursts, placing in both directions, minutes, and how
much longer bursts took; reading and writing Parquet is left out. Run as a module, this measures, and prints JSON: of
all days, or of so many as its argument says.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np

from bench.figures import Figure
from bench.signatures import Site

if TYPE_CHECKING:
    import polars as pl

DAYS, CONTROLLERS = 90, 96
_INTERVAL_S, _STEPS_A_DAY = 2, 43_200
_BEGAN = datetime(2026, 1, 5, tzinfo=UTC)
_FILESYSTEM = "widow1"
#: of both directions what is of all that is moved
_SHARES = {"read": 0.1, "write": 1.0}
#: a day of 1,000 jobs, and 90 days, may take so long
_MOST_DAY_S, _MOST_S = 5.0, 180.0
_TIMED_DAY = 45


def figures() -> Iterator[Figure]:
    """Time a day, and all days, each beside a pass over as many polls."""
    command = [sys.executable, "-m", "bench.attribution", str(DAYS)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    found = json.loads(done.stdout)
    day, pass_day = found["day_s"], found["pass_day_s"]
    polls = f"{_STEPS_A_DAY * CONTROLLERS:,} polls"
    yield Figure(
        f"attribute a day of {found['day_jobs']:,} jobs ({found['day_bursts']:,} bursts, {polls} of both directions) / "
        "NumPy sums these by instant",
        f"{day:.2f} s ({found['day_cpu_s']:.2f} s of processor time)",
        f"{pass_day:.3f} s ({found['pass_day_cpu_s']:.3f} s)",
        f"{day / pass_day:.0f}",
        f"{_MOST_DAY_S:g} s",
        day <= _MOST_DAY_S,
    )
    total, whole = found["days_s"], found["pass_day_s"] * DAYS
    yield Figure(
        f"… all {DAYS} days, {found['jobs']:,} jobs, day by day / so many passes",
        f"{total:.1f} s ({found['days_cpu_s']:.1f} s of processor time; the longest day {found['longest_s']:.2f} s)",
        f"{whole:.1f} s",
        f"{total / whole:.0f}",
        f"{_MOST_S:g} s",
        total <= _MOST_S,
    )


# ---- the measuring process


@dataclass(frozen=True, slots=True)
class _Tables:
    """What a night has of the site: its runs, and its signatures by direction."""

    runs: pl.DataFrame
    known: dict[str, pl.DataFrame]


def _tables(of: Site, days: Sequence[date]) -> _Tables:
    """Return the runs of a site, and the signatures of all applications that had any on some days, or near them."""
    import polars as pl

    from bench.signatures import sample_sets
    from iosig.estimates.signatures.parallel import extract_in_chunks
    from iosig.transforms.signatures.methods import SignatureParams
    from iosig.transforms.signatures.sample_sets import SampleSets

    started_us = np.round((of.first * float(_INTERVAL_S) - of.started_s) * 1e6).astype(np.int64)
    ended_us = started_us + np.round(of.duration_s * 1e6).astype(np.int64)
    owner = np.repeat(np.arange(len(of.sizes)), of.sizes)
    began = pl.lit(_BEGAN).cast(pl.Datetime("us", "UTC"))
    runs = pl.select(
        cluster=pl.lit("default"),
        job_id=pl.Series(100_000 + np.arange(len(owner))).cast(pl.String),
        started_at=began + pl.duration(microseconds=pl.Series(started_us)),
        ended_at=began + pl.duration(microseconds=pl.Series(ended_us)),
        filesystem=pl.lit(_FILESYSTEM),
        application_id=pl.format("user{}/app{}/16", pl.Series(owner % 400), pl.Series(owner)),
    ).with_columns(ended_on=pl.col("ended_at").dt.date())
    near = pl.col("ended_on").is_between(days[0] - timedelta(days=1), days[-1] + timedelta(days=2))
    wanted = np.unique(owner[runs.select(near).to_series().to_numpy()])
    every = sample_sets(of)
    sets = SampleSets.of([every.one(place) for place in wanted.tolist()])
    (answer,) = extract_in_chunks(sets, SignatureParams(), ("iosi",), 1)
    names = runs["application_id"].to_numpy()[(np.cumsum(of.sizes) - of.sizes)[wanted]]
    rows = [
        {
            "filesystem": _FILESYSTEM,
            "application_id": name,
            "duration_s": one.duration_s,
            "trust": 0.8,
            "burst_started_s": one.bursts.started_s.tolist(),
            "burst_ended_s": one.bursts.ended_s.tolist(),
            "burst_volume_bytes": one.bursts.volume_bytes.tolist(),
        }
        for name, one in zip(names.tolist(), answer.signatures, strict=True)
        if one.outcome == "extracted"
    ]
    known = pl.DataFrame(rows)
    volumes = pl.col("burst_volume_bytes")
    return _Tables(
        runs,
        {
            name: known.with_columns(volumes.list.eval(pl.element() * share), direction=pl.lit(name))
            for name, share in _SHARES.items()
        },
    )


def _attributed(of: Site, tables: _Tables, day: date) -> tuple[int, int]:
    """Attribute a day as a night does; return how many jobs it had, and how many bursts of theirs were looked for."""
    import polars as pl

    from iosig.estimates.attribution import Laid, There, Traffic, slowed_bursts

    runs = tables.runs.with_columns(is_own=pl.col("ended_on") == day)
    at, text = pl.Datetime("us", "UTC"), pl.String
    names = {"cluster": text, "job_id": text, "started_at": at, "filesystem": text, "direction": text}
    nobody = names | {"grid_started_at": at, "sample_bytes_per_s": pl.List(pl.Float64), "counted_s": pl.Float64}
    counted = pl.DataFrame(schema=nobody)
    own = runs.filter("is_own")
    first, last = own.select(pl.col("started_at").min(), pl.col("ended_at").max()).row(0)
    here = runs.filter(pl.col("started_at") < last, pl.col("ended_at") > first)
    begun, after = (int((at - _BEGAN).total_seconds() // _INTERVAL_S) for at in (first, last))
    laid = []
    for direction, share in _SHARES.items():
        traffic = of.bytes_per_s[begun : after + 1] * (_INTERVAL_S * share)
        moved = Traffic(traffic, _BEGAN.timestamp() + begun * _INTERVAL_S, float(_INTERVAL_S))
        laid.append(Laid.of(There.of(here, tables.known[direction], counted), moved, direction))
    for one in laid:
        one.rows()
    return own.height, slowed_bursts(laid).height


def _timed(work: Callable[[], object]) -> tuple[float, float]:
    """Return the wall and the processor seconds of some work."""
    began, used = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - began, time.process_time() - used


def _measured(day_count: int) -> dict[str, float]:
    """Time the day in the middle three times, and so many days, from the first one if they are all, once."""
    from bench.signatures import site

    of = site()
    first = 0 if day_count > DAYS - _TIMED_DAY else _TIMED_DAY
    days = [_BEGAN.date() + timedelta(days=number) for number in range(first, first + day_count)]
    day, tables = _BEGAN.date() + timedelta(days=_TIMED_DAY), _tables(of, days)
    polls = np.random.default_rng(0).random((2, _STEPS_A_DAY, CONTROLLERS))
    jobs, bursts = _attributed(of, tables, day)
    rounds = [(_timed(lambda: _attributed(of, tables, day)), _timed(lambda: polls.sum(axis=2))) for _ in range(3)]
    every = [_timed(lambda day=day: _attributed(of, tables, day)) for day in days]  # type: ignore[misc]
    return {
        "jobs": tables.runs.filter(tables.runs["ended_on"].is_in(days)).height,
        "day_jobs": jobs,
        "day_bursts": bursts,
        "day_s": statistics.median(ours[0] for ours, _ in rounds),
        "day_cpu_s": statistics.median(ours[1] for ours, _ in rounds),
        "pass_day_s": statistics.median(peer[0] for _, peer in rounds),
        "pass_day_cpu_s": statistics.median(peer[1] for _, peer in rounds),
        "days": day_count,
        "days_s": sum(wall for wall, _ in every),
        "days_cpu_s": sum(used for _, used in every),
        "longest_s": max(wall for wall, _ in every),
    }


if __name__ == "__main__":
    print(json.dumps(_measured(int(sys.argv[1]))))
