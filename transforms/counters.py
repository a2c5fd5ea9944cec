"""Counters made rises: what entries that only ever grow, and begin anew at 0, moved between two scrapes.

A server keeps an entry for each job that it serves. It drops one that was not used for a while, makes it anew at 0 when
the job comes back, and loses all of them when it restarts. A scrape reads all entries of a target; what did not change
since the scrape before has no row. So a row is about the time since its target's scrape before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

import numpy as np
import polars as pl
from numpy.typing import NDArray

from iosig.transforms.arrays import Bools, Ints

TARGET = ("filesystem", "component", "target")
ENTRY = (*TARGET, "job_key")
#: a scrape reads the entries of a target's jobs, or its totals
SCRAPED = (*TARGET, "is_job_scrape")
#: the flags of a rise
FIRST_SEEN, RESTARTED, LOST_SCRAPES, UNCLEAR, DECREASE = (
    "first_seen", "restarted", "lost_scrapes", "unclear", "decrease",
)  # fmt: skip
#: servers look for entries that were not used every half interval: after so many intervals they are gone
_SURELY_DROPPED = 1.5
#: one that was used so short a time before is there: servers' clocks and collectors' may differ by the rest
_SURELY_THERE = 0.75
#: longer than two days [us]: tells times of several targets apart
_SPAN_US = 1 << 40
#: how a counter's name begins that goes on and on
_TOTAL = "total_"
#: what is moved, by the names of a counter's values
_BYTES = ("total_read_bytes", "total_written_bytes")
#: tells which readings of counters that only a restart sets back have no rise to be trusted, as numbers other than 0:
#: of their values (n), one counter after the other, and marks of the first ones (n)
TellFalls = Callable[[Ints, Bools], NDArray[np.int8]]


@dataclass(frozen=True, slots=True)
class CounterParams:
    """How long an entry stays that is not used [s]: Lustre's `job_cleanup_interval`, 600 s where it is not set."""

    cleanup_interval_s: float = 600.0

    @property
    def cleanup(self) -> timedelta:
        """The same as a duration."""
        return timedelta(seconds=self.cleanup_interval_s)


@dataclass(frozen=True, slots=True)
class Rises:
    """What rose, and what is told of it.

    rows: columns of ENTRY, from_at, until_at, what rose by the names of the counters without `total_`, flag. gaps:
    columns of SCRAPED, from_at, until_at, flag. targets: of each target what was read, and what that comes to:
    columns of TARGET, sample_count, other_sample_count, duplicate_sample_count, conflicting_sample_count, is_silent,
    is_exceeded, and whether its totals have bytes of either direction: has_reads, has_writes.
    """

    rows: pl.DataFrame
    gaps: pl.DataFrame
    targets: pl.DataFrame


def timed_scrapes(scrapes: pl.DataFrame, before: pl.DataFrame) -> pl.DataFrame:
    """Return each target's scrapes by one collector, in order, each with `previous_at`, NULL where there is none.

    scrapes, before: those of a day and of the day before: columns of SCRAPED, collector, scraped_at, entry_count. Of
    several collectors of a target the one that read it most often is taken, for the whole day; names break ties.
    """
    last = _of_one_collector(before).group_by(SCRAPED).agg(before_at=pl.col("scraped_at").max())
    previous = pl.coalesce(pl.col("scraped_at").shift(1).over(SCRAPED), "before_at")
    return (
        _of_one_collector(scrapes)
        .sort(*SCRAPED, "scraped_at")
        .join(last, on=SCRAPED, how="left", maintain_order="left")
        .select(*SCRAPED, "collector", "scraped_at", "entry_count", previous_at=previous)
    )


def _of_one_collector(scrapes: pl.DataFrame) -> pl.DataFrame:
    distinct = scrapes.group_by(*SCRAPED, "collector", "scraped_at").agg(pl.col("entry_count").max())
    counted = distinct.group_by(*SCRAPED, "collector").agg(count=pl.len())
    ranked = counted.sort("count", "collector", descending=[True, False], nulls_last=True)
    taken = ranked.unique(SCRAPED, keep="first", maintain_order=True).select(*SCRAPED, "collector")
    return distinct.join(taken, on=[*SCRAPED, "collector"], how="semi", nulls_equal=True)


def last_values(samples: pl.DataFrame, scrapes: pl.DataFrame) -> pl.DataFrame:
    """Return each entry's last reading of a day.

    samples: rows of `counter_samples` in the order of landing. scrapes: as `timed_scrapes` gives them.
    """
    taken = _taken(samples, scrapes)
    return taken.filter("is_known").sort(*ENTRY, "scraped_at", maintain_order=True).unique(
        ENTRY, keep="last", maintain_order=True
    )  # fmt: skip


def _taken(samples: pl.DataFrame, scrapes: pl.DataFrame) -> pl.DataFrame:
    """Return readings with `previous_at`, and `is_known`: whether they are of a scrape that was taken."""
    known = scrapes.with_columns(is_known=pl.lit(True))
    return (
        samples.with_columns(is_job_scrape=pl.col("job_key").is_not_null())
        .join(known, on=[*SCRAPED, "collector", "scraped_at"], how="left", nulls_equal=True, maintain_order="left")
        .with_columns(pl.col("is_known").fill_null(False))
    )


def rises(
    samples: pl.DataFrame,
    scrapes: pl.DataFrame,
    ends: pl.DataFrame,
    tell_falls: TellFalls,
    params: CounterParams | None = None,
) -> Rises:
    """Return what rose of the entries of some targets on a day.

    samples: rows of `counter_samples` in the order of landing. scrapes: as `timed_scrapes` gives them. ends: the last
    values of the day before, as `last_values` gives them. tell_falls: judges totals, which only a restart sets back.

    An entry that its target's scrape before did not have begins at 0; so does one that says that it counts since
    another time, or, where it does not say, that fell or was not used for too long to be there still. One that is read
    first with its target's first scrape has no rise, for nobody knows since when it counts.
    """
    params = params or CounterParams()
    taken = _taken(samples, scrapes)
    ordered = _ordered(taken.filter("is_known"), ends)
    vanished = _vanished(ordered, scrapes, params)
    judged = _judged(ordered, params, tell_falls)
    rows = _rows(judged.filter(~pl.col("is_carried")), vanished)
    return Rises(rows, _gaps(rows, scrapes, vanished, params), _targets(taken, ordered, rows))


def _values(samples: pl.DataFrame) -> list[str]:
    return [name for name in samples.columns if name.startswith(_TOTAL)]


def _ordered(taken: pl.DataFrame, ends: pl.DataFrame) -> pl.DataFrame:
    """Return the readings of each entry in the order of time, after its last one of the day before.

    More columns: is_carried, is_first (of its entry), is_repeated and is_conflicting (the time was read before).
    """
    names = [*ENTRY, "scraped_at", "sampled_at", "counted_since_at", "previous_at", *_values(taken)]
    carried = ends.select(pl.col(name) if name != "previous_at" else pl.lit(None, taken.schema[name]).alias(name) for name in names)  # fmt: skip  # noqa: E501
    both = pl.concat([carried.with_columns(is_carried=True), taken.select(names).with_columns(is_carried=False)])
    both = both.sort(*ENTRY, "scraped_at", maintain_order=True)
    is_first = pl.any_horizontal(pl.col(name).ne_missing(pl.col(name).shift(1)) for name in ENTRY)
    is_repeated = ~pl.col("is_first") & (pl.col("scraped_at") == pl.col("scraped_at").shift(1))
    is_other = pl.any_horizontal(pl.col(name).ne_missing(pl.col(name).shift(1)) for name in _values(taken))
    return (
        both.with_columns(is_first=is_first.fill_null(True) | (pl.int_range(pl.len()) == 0))
        .with_columns(is_repeated=is_repeated.fill_null(False))
        .with_columns(is_conflicting=pl.col("is_repeated") & is_other)
    )


def _judged(ordered: pl.DataFrame, params: CounterParams, tell_falls: TellFalls) -> pl.DataFrame:
    """Return readings that count with what they rose by, which ones began anew, and their flags."""
    values = _values(ordered)
    rows = ordered.filter(~pl.col("is_repeated"))
    rows = rows.with_columns(is_untold=pl.Series(_untold(rows, tell_falls)))
    before = {name: pl.col(name).shift(1) for name in (*values, "sampled_at", "scraped_at", "counted_since_at")}
    since, since_before = pl.col("counted_since_at"), before["counted_since_at"]
    fell = pl.any_horizontal((pl.col(name) < before[name]).fill_null(False) for name in values)
    says_so = (since != since_before).fill_null(False)
    is_sure = (since == since_before).fill_null(False)
    is_total, has_before = pl.col("job_key").is_null(), ~pl.col("is_first")
    # what a collector that does not know when an entry changed last says is up to a scrape late
    known_at = before["sampled_at"] - pl.when(before["sampled_at"] == before["scraped_at"]).then(
        pl.col("scraped_at") - pl.col("previous_at")
    ).otherwise(pl.duration())
    is_idle = pl.col("previous_at") - before["sampled_at"] >= params.cleanup * _SURELY_DROPPED
    marks = {
        "begins": ~has_before & pl.col("previous_at").is_not_null(),
        "is_anew": has_before & ~is_total & (says_so | (~is_sure & (fell | is_idle.fill_null(False)))),
        # without falling, it may have been dropped just before it was used again
        "is_unclear": has_before & ~is_total & ~is_sure & (pl.col("sampled_at") - known_at >= params.cleanup),
        "is_contradicted": has_before & fell & (is_total | is_sure),
        "is_sure": is_sure,
        "was_in_use": (pl.coalesce(since, "sampled_at") - known_at) < params.cleanup,
        "is_lost": (pl.col("scraped_at") - pl.col("previous_at") > params.cleanup).fill_null(False),
    }
    rise = {f"rise_{name}": pl.col(name) - before[name].fill_null(0) for name in values}
    return rows.with_columns(**marks, **rise)


def _untold(rows: pl.DataFrame, tell_falls: TellFalls) -> Bools:
    """Mark the totals of targets whose rise is not to be trusted."""
    is_total = rows["job_key"].is_null().to_numpy()
    marked: Bools = np.zeros(rows.height, dtype=np.bool_)
    totals = rows.filter(pl.col("job_key").is_null())
    for name in _BYTES if totals.height else ():
        found = tell_falls(totals[name].fill_null(0).to_numpy(), totals["is_first"].to_numpy())
        marked[is_total] |= found != 0
    return marked


def _vanished(ordered: pl.DataFrame, scrapes: pl.DataFrame, params: CounterParams) -> pl.DataFrame:
    """Return the scrapes that lack entries which were in use just before: their server restarted.

    Only entries count that say since when they count, and when they were used last. One that is gone is missed until it
    would have been dropped.
    """
    timed = scrapes.filter("is_job_scrape").sort(*TARGET, "scraped_at")
    targets = timed.select(TARGET).unique(maintain_order=True).with_row_index("number").cast({"number": pl.Int64})
    numbers = timed.join(targets, on=TARGET, how="left", maintain_order="left")["number"].to_numpy()
    entries = _numbered(ordered, targets)
    if entries.is_empty():
        return timed.clear()
    cleanup_us, at = round(params.cleanup_interval_s * _SURELY_THERE * 1e6), pl.col("scraped_at").dt.epoch("us")
    origin = min(int(frame.select(at.min()).item()) for frame in (timed, entries))
    until = pl.col("sampled_at").dt.epoch("us") + cleanup_us
    following = pl.when(~pl.col("is_first").shift(-1, fill_value=True)).then(at.shift(-1))
    number, since_us, until_us = (
        entries.select(each).to_series().to_numpy()
        for each in (pl.col("number"), at - origin, pl.min_horizontal(until, following) - origin)
    )
    # where both are one, the collector does not know when it was used last; LDMS, which does, leaves out what stays
    knows = (pl.col("sampled_at") < pl.col("scraped_at")) & pl.col("counted_since_at").is_not_null()
    says_so = entries.select(knows).to_series().to_numpy()
    codes = numbers * _SPAN_US + timed.select(at - origin).to_series().to_numpy()
    begin = np.searchsorted(codes, number * _SPAN_US + since_us)
    is_read = ~entries["is_carried"].to_numpy()
    end = np.maximum(np.searchsorted(codes, number * _SPAN_US + np.clip(until_us, 0, _SPAN_US - 1)), begin + is_read)
    begin, end = begin[says_so], end[says_so]
    count = len(codes) + 1
    there = np.cumsum(np.bincount(begin, minlength=count) - np.bincount(end, minlength=count))[:-1]
    lacking = pl.Series("lacking", there - timed["entry_count"].to_numpy())
    before = pl.col("lacking").shift(1).over(TARGET).fill_null(0).clip(0)
    return timed.with_columns(lacking).filter(pl.col("lacking") > before).drop("lacking")


def _numbered(ordered: pl.DataFrame, targets: pl.DataFrame) -> pl.DataFrame:
    """Return the readings of jobs' entries with the `number` of their target, where it has one."""
    known = ordered.filter(pl.col("job_key").is_not_null(), ~pl.col("is_repeated"))
    # they are in order of targets: only the first of each needs to be looked up
    is_other = pl.any_horizontal(pl.col(name) != pl.col(name).shift() for name in TARGET).fill_null(True)
    run = known.select(is_other.cum_sum().cast(pl.Int64) - 1).to_series()
    firsts = known.filter(is_other).select(TARGET).join(targets, on=TARGET, how="left", maintain_order="left")
    return known.with_columns(number=firsts["number"].gather(run)).filter(pl.col("number").is_not_null())


def _rows(judged: pl.DataFrame, vanished: pl.DataFrame) -> pl.DataFrame:
    """Return the rises, those of nothing left out."""
    values = _values(judged)
    marks = vanished.select(*TARGET, "scraped_at", is_vanished=True)
    judged = judged.join(marks, on=[*TARGET, "scraped_at"], how="left", maintain_order="left").with_columns(
        pl.col("is_vanished").fill_null(False)
    )
    is_whole = pl.col("begins") | pl.col("is_anew")
    # when one entry in use begins anew, the server did: the others lost what they moved since the scrape before, too
    restarts = (pl.col("is_anew") & pl.col("was_in_use")).any().over(*TARGET, "scraped_at") | pl.col("is_vanished")
    is_unknown = (pl.col("is_first") & ~pl.col("begins")) | pl.col("is_contradicted") | pl.col("is_untold")
    flag = (
        pl.when(pl.col("is_first") & ~pl.col("begins")).then(pl.lit(FIRST_SEEN))
        .when(pl.col("is_contradicted") | pl.col("is_untold")).then(pl.lit(DECREASE))
        .when(pl.col("is_anew") & restarts).then(pl.lit(RESTARTED))
        .when(pl.col("is_lost") & pl.col("job_key").is_not_null() & (is_whole | ~pl.col("is_sure")))
        .then(pl.lit(LOST_SCRAPES))
        .when(pl.col("is_unclear") & ~is_whole).then(pl.lit(UNCLEAR))
    )  # fmt: skip
    rose = {
        name.removeprefix(_TOTAL): pl.when(~is_unknown).then(pl.when(is_whole).then(name).otherwise(f"rise_{name}"))
        for name in values
    }
    found = judged.select(*ENTRY, pl.col("previous_at").alias("from_at"), pl.col("scraped_at").alias("until_at"), **rose, flag=flag)  # fmt: skip  # noqa: E501
    moved = pl.any_horizontal(pl.col(name).fill_null(0) != 0 for name in rose)
    return found.filter(moved | pl.col("flag").is_not_null())


def _gaps(
    rows: pl.DataFrame, scrapes: pl.DataFrame, vanished: pl.DataFrame, params: CounterParams
) -> pl.DataFrame:  # fmt: skip
    """Return the intervals of targets in which counts may have got lost."""
    between = pl.col("scraped_at") - pl.col("previous_at")
    edges = {"from_at": "previous_at", "until_at": "scraped_at"}
    lost = scrapes.filter(between > params.cleanup).select(*SCRAPED, **edges, flag=pl.lit(LOST_SCRAPES))
    is_restart = (pl.col("flag") == RESTARTED) | ((pl.col("flag") == DECREASE) & pl.col("job_key").is_null())
    restarts = rows.filter(is_restart).select(
        *TARGET, "from_at", "until_at", is_job_scrape=pl.col("job_key").is_not_null(), flag=pl.lit(RESTARTED)
    )
    gone = vanished.select(*SCRAPED, **edges, flag=pl.lit(RESTARTED))
    both = pl.concat([restarts.select(lost.columns), gone, lost])
    return both.unique([*SCRAPED, "until_at"], keep="first", maintain_order=True).sort(*SCRAPED, "until_at")


def edge_gaps(scrapes: pl.DataFrame, params: CounterParams | None = None) -> pl.DataFrame:
    """Return the intervals of a day before a target was read first, and after it was read last, if others were read.

    scrapes: all of a day, as `timed_scrapes` gives them. Returns columns of SCRAPED, from_at, until_at, flag.
    """
    cleanup = (params or CounterParams()).cleanup
    system = ["filesystem", "is_job_scrape"]
    own = scrapes.group_by(SCRAPED).agg(
        first=pl.col("scraped_at").min(), last=pl.col("scraped_at").max(), is_new=pl.col("previous_at").is_null().any()
    )
    every = scrapes.group_by(system).agg(begin=pl.col("scraped_at").min(), end=pl.col("scraped_at").max())
    both = own.join(every, on=system, how="left")
    edges = [
        both.filter("is_new").select(*SCRAPED, from_at="begin", until_at="first"),
        both.select(*SCRAPED, from_at="last", until_at="end"),
    ]
    found = pl.concat(edges).filter(pl.col("until_at") - pl.col("from_at") > cleanup)
    return found.with_columns(flag=pl.lit(LOST_SCRAPES)).sort(*SCRAPED, "until_at")


def _targets(taken: pl.DataFrame, ordered: pl.DataFrame, rows: pl.DataFrame) -> pl.DataFrame:
    """Return what was read of each target, and whether it counts at all, and no less than its jobs."""
    is_zero = pl.all_horizontal(pl.col(name).fill_null(0) == 0 for name in _values(taken))
    read = taken.group_by(TARGET).agg(
        other_sample_count=(~pl.col("is_known")).sum().cast(pl.Int64), is_silent=(is_zero | ~pl.col("is_known")).all()
    )
    kept = ordered.filter(~pl.col("is_carried")).group_by(TARGET).agg(
        sample_count=(~pl.col("is_repeated")).sum().cast(pl.Int64),
        duplicate_sample_count=(pl.col("is_repeated") & ~pl.col("is_conflicting")).sum().cast(pl.Int64),
        conflicting_sample_count=pl.col("is_conflicting").sum().cast(pl.Int64),
    )  # fmt: skip
    of_totals = ordered.filter(pl.col("job_key").is_null()).group_by(TARGET)
    told = of_totals.agg(
        has_reads=pl.col("total_read_bytes").is_not_null().any(),
        has_writes=pl.col("total_written_bytes").is_not_null().any(),
    )
    counts = pl.col("sample_count", "duplicate_sample_count", "conflicting_sample_count").fill_null(0)
    exceeded = rows.group_by(TARGET).agg(
        is_exceeded=pl.any_horizontal(_is_exceeded(name) for name in ("read_bytes", "written_bytes"))
    )
    found = read
    for more in (kept, exceeded, told):
        found = found.join(more, on=TARGET, how="left")
    return found.with_columns(
        counts, pl.col("is_exceeded", "has_reads", "has_writes").fill_null(False)
    ).sort(TARGET)  # fmt: skip


def _is_exceeded(name: str) -> pl.Expr:
    """Tell whether a target's jobs moved more than itself: by a hundredth, and more than it moved between two scrapes.

    The two are not read at the same time.
    """
    is_total = pl.col("job_key").is_null()
    total, jobs = pl.col(name).filter(is_total), pl.col(name).filter(~is_total).sum()
    is_known = (pl.col("flag").filter(is_total).fill_null(FIRST_SEEN) == FIRST_SEEN).all() & (total.len() > 0)
    return (is_known & (jobs > total.sum() * 1.01 + total.max())).fill_null(False)
