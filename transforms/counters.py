"""Compute counter deltas: differences between scrapes of monotonic counters that may reset to 0.

A server keeps an entry per job. It drops an entry that was not used for a while, creates it at 0 when the job returns,
and loses all entries at a restart. A scrape reads all entries of a target, and unchanged entries have no row. A row
therefore covers the time since the previous scrape of its target.
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
#: key of a scrape, which reads either the job entries of a target or its totals
SCRAPED = (*TARGET, "is_job_scrape")
#: flags of a delta
FIRST_SEEN, RESTARTED, LOST_SCRAPES, UNCLEAR, DECREASE = (
    "first_seen", "restarted", "lost_scrapes", "unclear", "decrease",
)  # fmt: skip
#: idle time after which an entry is certainly dropped, in cleanup intervals; servers check every half interval
_MAX_IDLE_INTERVALS = 1.5
#: idle time up to which an entry certainly exists, in cleanup intervals; leaves a margin for clock differences
_MIN_KEPT_INTERVALS = 0.75
#: time longer than two days [us]; separates targets on a common time axis
_SPAN_US = 1 << 40
#: prefix of monotonic counters
_TOTAL = "total_"
#: counters of bytes
_BYTES = ("total_read_bytes", "total_written_bytes")
#: function that finds implausible readings of counters that only a restart resets; arguments are the concatenated
#: values of all counters, and marks of the first value of each counter; returns numbers other than 0 for implausible
#: readings
FallDetector = Callable[[Ints, Bools], NDArray[np.int8]]


@dataclass(frozen=True, slots=True)
class CounterParams:
    """Time after which servers drop unused entries [s]: Lustre's `job_cleanup_interval`, 600 s by default."""

    cleanup_interval_s: float = 600.0

    @property
    def cleanup(self) -> timedelta:
        """The interval as a `timedelta`."""
        return timedelta(seconds=self.cleanup_interval_s)


@dataclass(frozen=True, slots=True)
class CounterDeltas:
    """Deltas of entries, gaps in which counts may be lost, and statistics of targets.

    Attributes
    ----------
    rows : pl.DataFrame
        Columns of ENTRY, interval_started_at, interval_ended_at, the deltas (named as the counters without `total_`),
        and flag.
    gaps : pl.DataFrame
        Intervals in which counts may be lost: columns of SCRAPED, interval_started_at, interval_ended_at, flag.
    targets : pl.DataFrame
        Columns of TARGET, sample_count, redundant_sample_count, duplicate_sample_count, conflicting_sample_count,
        is_silent (counts nothing), is_overcounted (jobs moved more than the target), and has_reads and has_writes
        (totals have bytes).

    """

    rows: pl.DataFrame
    gaps: pl.DataFrame
    targets: pl.DataFrame


def order_scrapes(scrapes: pl.DataFrame, before: pl.DataFrame) -> pl.DataFrame:
    """Select one collector per target, and order its scrapes.

    Parameters
    ----------
    scrapes, before : pl.DataFrame
        Scrapes of a day and of the previous day: columns of SCRAPED, collector, scraped_at, entry_count.

    Returns
    -------
    pl.DataFrame
        Scrapes of the collector with the most scrapes (ties are broken by name), with `previous_at`, the time of the
        previous scrape, or NULL.

    """
    last = _select_collector(before).group_by(SCRAPED).agg(before_at=pl.col("scraped_at").max())
    previous = pl.coalesce(pl.col("scraped_at").shift(1).over(SCRAPED), "before_at")
    return (
        _select_collector(scrapes)
        .sort(*SCRAPED, "scraped_at")
        .join(last, on=SCRAPED, how="left", maintain_order="left")
        .select(*SCRAPED, "collector", "scraped_at", "entry_count", previous_at=previous)
    )


def _select_collector(scrapes: pl.DataFrame) -> pl.DataFrame:
    distinct = scrapes.group_by(*SCRAPED, "collector", "scraped_at").agg(pl.col("entry_count").max())
    counted = distinct.group_by(*SCRAPED, "collector").agg(count=pl.len())
    ranked = counted.sort("count", "collector", descending=[True, False], nulls_last=True)
    selected = ranked.unique(SCRAPED, keep="first", maintain_order=True).select(*SCRAPED, "collector")
    return distinct.join(selected, on=[*SCRAPED, "collector"], how="semi", nulls_equal=True)


def select_last_values(samples: pl.DataFrame, scrapes: pl.DataFrame) -> pl.DataFrame:
    """Select the last reading of each entry of a day.

    Parameters
    ----------
    samples : pl.DataFrame
        Rows of `counter_samples` in the order of landing.
    scrapes : pl.DataFrame
        Result of `order_scrapes`.

    Returns
    -------
    pl.DataFrame

    """
    marked = _mark_selected(samples, scrapes)
    return marked.filter("is_known").sort(*ENTRY, "scraped_at", maintain_order=True).unique(
        ENTRY, keep="last", maintain_order=True
    )  # fmt: skip


def _mark_selected(samples: pl.DataFrame, scrapes: pl.DataFrame) -> pl.DataFrame:
    """Add `previous_at`, and `is_known`: whether the reading belongs to a selected scrape."""
    selected = scrapes.with_columns(is_known=pl.lit(True))
    return (
        samples.with_columns(is_job_scrape=pl.col("job_key").is_not_null())
        .join(selected, on=[*SCRAPED, "collector", "scraped_at"], how="left", nulls_equal=True, maintain_order="left")
        .with_columns(pl.col("is_known").fill_null(False))
    )


def compute_deltas(
    samples: pl.DataFrame,
    scrapes: pl.DataFrame,
    last_values: pl.DataFrame,
    find_falls: FallDetector,
    params: CounterParams | None = None,
) -> CounterDeltas:
    """Compute the deltas of all entries of some targets on a day.

    Parameters
    ----------
    samples : pl.DataFrame
        Rows of `counter_samples` in the order of landing.
    scrapes : pl.DataFrame
        Result of `order_scrapes`.
    last_values : pl.DataFrame
        Result of `select_last_values` for the previous day.
    find_falls : FallDetector
        Finds implausible readings of totals.
    params : CounterParams, optional
        Cleanup interval of the servers.

    Returns
    -------
    CounterDeltas

    Notes
    -----
    An entry starts at 0 if the previous scrape of its target did not have it, if its start time changed, or, without a
    start time, if it decreased or was idle for too long to be kept. An entry in the first scrape of its target has no
    delta, since the start of its count is unknown.

    """
    params = params or CounterParams()
    marked = _mark_selected(samples, scrapes)
    ordered = _order_readings(marked.filter("is_known"), last_values)
    vanished = _find_restarts(ordered, scrapes, params)
    classified = _classify_readings(ordered, params, find_falls)
    rows = _delta_rows(classified.filter(~pl.col("is_carried")), vanished)
    return CounterDeltas(rows, _gaps(rows, scrapes, vanished, params), _target_statistics(marked, ordered, rows))


def _values(samples: pl.DataFrame) -> list[str]:
    return [name for name in samples.columns if name.startswith(_TOTAL)]


def _order_readings(readings: pl.DataFrame, last_values: pl.DataFrame) -> pl.DataFrame:
    """Sort the readings of each entry by time, after the last reading of the previous day.

    Adds is_carried (from the previous day), is_first (in its entry), is_repeated and is_conflicting (equal times).
    """
    names = [*ENTRY, "scraped_at", "sampled_at", "counter_started_at", "previous_at", *_values(readings)]
    carried_rows = last_values.select(pl.col(name) if name != "previous_at" else pl.lit(None, readings.schema[name]).alias(name) for name in names)  # fmt: skip  # noqa: E501
    ordered = pl.concat(
        [carried_rows.with_columns(is_carried=True), readings.select(names).with_columns(is_carried=False)]
    )
    ordered = ordered.sort(*ENTRY, "scraped_at", maintain_order=True)
    is_first = pl.any_horizontal(pl.col(name).ne_missing(pl.col(name).shift(1)) for name in ENTRY)
    is_repeated = ~pl.col("is_first") & (pl.col("scraped_at") == pl.col("scraped_at").shift(1))
    is_other = pl.any_horizontal(pl.col(name).ne_missing(pl.col(name).shift(1)) for name in _values(readings))
    return (
        ordered.with_columns(is_first=is_first.fill_null(True) | (pl.int_range(pl.len()) == 0))
        .with_columns(is_repeated=is_repeated.fill_null(False))
        .with_columns(is_conflicting=pl.col("is_repeated") & is_other)
    )


def _classify_readings(ordered: pl.DataFrame, params: CounterParams, find_falls: FallDetector) -> pl.DataFrame:
    """Add the deltas of distinct readings, and mark resets and doubtful deltas."""
    values = _values(ordered)
    rows = ordered.filter(~pl.col("is_repeated"))
    rows = rows.with_columns(is_implausible=pl.Series(_find_implausible(rows, find_falls)))
    before = {name: pl.col(name).shift(1) for name in (*values, "sampled_at", "scraped_at", "counter_started_at")}
    start, start_before = pl.col("counter_started_at"), before["counter_started_at"]
    has_decreased = pl.any_horizontal((pl.col(name) < before[name]).fill_null(False) for name in values)
    has_other_start = (start != start_before).fill_null(False)
    has_same_start = (start == start_before).fill_null(False)
    is_total, has_before = pl.col("job_key").is_null(), ~pl.col("is_first")
    # a collector that does not know the time of the last change reports it up to one scrape late
    known_at = before["sampled_at"] - pl.when(before["sampled_at"] == before["scraped_at"]).then(
        pl.col("scraped_at") - pl.col("previous_at")
    ).otherwise(pl.duration())
    is_idle = pl.col("previous_at") - before["sampled_at"] >= params.cleanup * _MAX_IDLE_INTERVALS
    marks = {
        "is_new": ~has_before & pl.col("previous_at").is_not_null(),
        "is_reset": has_before
        & ~is_total
        & (has_other_start | (~has_same_start & (has_decreased | is_idle.fill_null(False)))),
        # without a decrease, the entry may have been dropped just before its next use
        "is_unclear": has_before & ~is_total & ~has_same_start & (pl.col("sampled_at") - known_at >= params.cleanup),
        "is_contradicted": has_before & has_decreased & (is_total | has_same_start),
        "is_sure": has_same_start,
        "was_in_use": (pl.coalesce(start, "sampled_at") - known_at) < params.cleanup,
        "is_lost": (pl.col("scraped_at") - pl.col("previous_at") > params.cleanup).fill_null(False),
    }
    deltas = {f"delta_{name}": pl.col(name) - before[name].fill_null(0) for name in values}
    return rows.with_columns(**marks, **deltas)


def _find_implausible(rows: pl.DataFrame, find_falls: FallDetector) -> Bools:
    """Mark the totals of targets with implausible values."""
    is_total = rows["job_key"].is_null().to_numpy()
    marked: Bools = np.zeros(rows.height, dtype=np.bool_)
    totals = rows.filter(pl.col("job_key").is_null())
    for name in _BYTES if totals.height else ():
        fall = find_falls(totals[name].fill_null(0).to_numpy(), totals["is_first"].to_numpy())
        marked[is_total] |= fall != 0
    return marked


def _find_restarts(ordered: pl.DataFrame, scrapes: pl.DataFrame, params: CounterParams) -> pl.DataFrame:
    """Find scrapes after a restart of the server, which lack entries that were in use just before.

    Only entries with a start time and a time of last use count. A missing entry counts until it would have been
    dropped.
    """
    timed = scrapes.filter("is_job_scrape").sort(*TARGET, "scraped_at")
    targets = timed.select(TARGET).unique(maintain_order=True).with_row_index("number").cast({"number": pl.Int64})
    numbers = timed.join(targets, on=TARGET, how="left", maintain_order="left")["number"].to_numpy()
    entries = _add_target_numbers(ordered, targets)
    if entries.is_empty():
        return timed.clear()
    cleanup_us, at = round(params.cleanup_interval_s * _MIN_KEPT_INTERVALS * 1e6), pl.col("scraped_at").dt.epoch("us")
    origin = min(int(frame.select(at.min()).item()) for frame in (timed, entries))
    expiry_us = pl.col("sampled_at").dt.epoch("us") + cleanup_us
    next_scrape_us = pl.when(~pl.col("is_first").shift(-1, fill_value=True)).then(at.shift(-1))
    number, since_us, until_us = (
        entries.select(column).to_series().to_numpy()
        for column in (pl.col("number"), at - origin, pl.min_horizontal(expiry_us, next_scrape_us) - origin)
    )
    # if times are equal, the collector does not know the last use; LDMS does, and omits unchanged entries
    has_times = (pl.col("sampled_at") < pl.col("scraped_at")) & pl.col("counter_started_at").is_not_null()
    is_usable = entries.select(has_times).to_series().to_numpy()
    codes = numbers * _SPAN_US + timed.select(at - origin).to_series().to_numpy()
    begin = np.searchsorted(codes, number * _SPAN_US + since_us)
    is_read = ~entries["is_carried"].to_numpy()
    end = np.maximum(np.searchsorted(codes, number * _SPAN_US + np.clip(until_us, 0, _SPAN_US - 1)), begin + is_read)
    begin, end = begin[is_usable], end[is_usable]
    count = len(codes) + 1
    expected = np.cumsum(np.bincount(begin, minlength=count) - np.bincount(end, minlength=count))[:-1]
    missing_count = pl.Series("missing_count", expected - timed["entry_count"].to_numpy())
    before = pl.col("missing_count").shift(1).over(TARGET).fill_null(0).clip(0)
    return timed.with_columns(missing_count).filter(pl.col("missing_count") > before).drop("missing_count")


def _add_target_numbers(ordered: pl.DataFrame, targets: pl.DataFrame) -> pl.DataFrame:
    """Keep readings of job entries, and add the `number` of their target."""
    job_readings = ordered.filter(pl.col("job_key").is_not_null(), ~pl.col("is_repeated"))
    # readings are sorted by target, so look up only the first one of each
    is_other = pl.any_horizontal(pl.col(name) != pl.col(name).shift() for name in TARGET).fill_null(True)
    run = job_readings.select(is_other.cum_sum().cast(pl.Int64) - 1).to_series()
    firsts = job_readings.filter(is_other).select(TARGET).join(targets, on=TARGET, how="left", maintain_order="left")
    return job_readings.with_columns(number=firsts["number"].gather(run)).filter(pl.col("number").is_not_null())


def _delta_rows(classified: pl.DataFrame, vanished: pl.DataFrame) -> pl.DataFrame:
    """Select nonzero or flagged deltas."""
    values = _values(classified)
    marks = vanished.select(*TARGET, "scraped_at", is_vanished=True)
    classified = classified.join(marks, on=[*TARGET, "scraped_at"], how="left", maintain_order="left").with_columns(
        pl.col("is_vanished").fill_null(False)
    )
    is_whole = pl.col("is_new") | pl.col("is_reset")
    # the reset of an entry in use means a restart of the server: all its entries lost their counts since the last
    # scrape
    restarts = (pl.col("is_reset") & pl.col("was_in_use")).any().over(*TARGET, "scraped_at") | pl.col("is_vanished")
    is_unknown = (pl.col("is_first") & ~pl.col("is_new")) | pl.col("is_contradicted") | pl.col("is_implausible")
    flag = (
        pl.when(pl.col("is_first") & ~pl.col("is_new")).then(pl.lit(FIRST_SEEN))
        .when(pl.col("is_contradicted") | pl.col("is_implausible")).then(pl.lit(DECREASE))
        .when(pl.col("is_reset") & restarts).then(pl.lit(RESTARTED))
        .when(pl.col("is_lost") & pl.col("job_key").is_not_null() & (is_whole | ~pl.col("is_sure")))
        .then(pl.lit(LOST_SCRAPES))
        .when(pl.col("is_unclear") & ~is_whole).then(pl.lit(UNCLEAR))
    )  # fmt: skip
    deltas = {
        name.removeprefix(_TOTAL): pl.when(~is_unknown).then(pl.when(is_whole).then(name).otherwise(f"delta_{name}"))
        for name in values
    }
    rows = classified.select(*ENTRY, pl.col("previous_at").alias("interval_started_at"), pl.col("scraped_at").alias("interval_ended_at"), **deltas, flag=flag)  # fmt: skip  # noqa: E501
    is_nonzero = pl.any_horizontal(pl.col(name).fill_null(0) != 0 for name in deltas)
    return rows.filter(is_nonzero | pl.col("flag").is_not_null())


def _gaps(
    rows: pl.DataFrame, scrapes: pl.DataFrame, vanished: pl.DataFrame, params: CounterParams
) -> pl.DataFrame:  # fmt: skip
    """Collect the intervals of targets in which counts may be lost."""
    between = pl.col("scraped_at") - pl.col("previous_at")
    edges = {"interval_started_at": "previous_at", "interval_ended_at": "scraped_at"}
    lost_scrapes = scrapes.filter(between > params.cleanup).select(*SCRAPED, **edges, flag=pl.lit(LOST_SCRAPES))
    is_restart = (pl.col("flag") == RESTARTED) | ((pl.col("flag") == DECREASE) & pl.col("job_key").is_null())
    restarts = rows.filter(is_restart).select(
        *TARGET,
        "interval_started_at",
        "interval_ended_at",
        is_job_scrape=pl.col("job_key").is_not_null(),
        flag=pl.lit(RESTARTED),
    )
    vanished_targets = vanished.select(*SCRAPED, **edges, flag=pl.lit(RESTARTED))
    gaps = pl.concat([restarts.select(lost_scrapes.columns), vanished_targets, lost_scrapes])
    return gaps.unique([*SCRAPED, "interval_ended_at"], keep="first", maintain_order=True).sort(
        *SCRAPED, "interval_ended_at"
    )


def find_edge_gaps(scrapes: pl.DataFrame, params: CounterParams | None = None) -> pl.DataFrame:
    """Find gaps before the first and after the last scrape of a target, relative to other targets of the file system.

    Parameters
    ----------
    scrapes : pl.DataFrame
        All scrapes of a day, from `order_scrapes`.
    params : CounterParams, optional
        Cleanup interval of the servers; shorter gaps are left out.

    Returns
    -------
    pl.DataFrame
        Columns of SCRAPED, interval_started_at, interval_ended_at, flag.

    """
    cleanup = (params or CounterParams()).cleanup
    system = ["filesystem", "is_job_scrape"]
    target_spans = scrapes.group_by(SCRAPED).agg(
        first=pl.col("scraped_at").min(), last=pl.col("scraped_at").max(), is_new=pl.col("previous_at").is_null().any()
    )
    overall = scrapes.group_by(system).agg(begin=pl.col("scraped_at").min(), end=pl.col("scraped_at").max())
    spans = target_spans.join(overall, on=system, how="left")
    edges = [
        spans.filter("is_new").select(*SCRAPED, interval_started_at="begin", interval_ended_at="first"),
        spans.select(*SCRAPED, interval_started_at="last", interval_ended_at="end"),
    ]
    gaps = pl.concat(edges).filter(pl.col("interval_ended_at") - pl.col("interval_started_at") > cleanup)
    return gaps.with_columns(flag=pl.lit(LOST_SCRAPES)).sort(*SCRAPED, "interval_ended_at")


def _target_statistics(readings: pl.DataFrame, ordered: pl.DataFrame, rows: pl.DataFrame) -> pl.DataFrame:
    """Count the readings of each target, and test whether it counts anything, and less than its jobs."""
    is_zero = pl.all_horizontal(pl.col(name).fill_null(0) == 0 for name in _values(readings))
    read = readings.group_by(TARGET).agg(
        redundant_sample_count=(~pl.col("is_known")).sum().cast(pl.Int64),
        is_silent=(is_zero | ~pl.col("is_known")).all(),
    )
    sample_counts = ordered.filter(~pl.col("is_carried")).group_by(TARGET).agg(
        sample_count=(~pl.col("is_repeated")).sum().cast(pl.Int64),
        duplicate_sample_count=(pl.col("is_repeated") & ~pl.col("is_conflicting")).sum().cast(pl.Int64),
        conflicting_sample_count=pl.col("is_conflicting").sum().cast(pl.Int64),
    )  # fmt: skip
    of_totals = ordered.filter(pl.col("job_key").is_null()).group_by(TARGET)
    directions = of_totals.agg(
        has_reads=pl.col("total_read_bytes").is_not_null().any(),
        has_writes=pl.col("total_written_bytes").is_not_null().any(),
    )
    counts = pl.col("sample_count", "duplicate_sample_count", "conflicting_sample_count").fill_null(0)
    exceeded = rows.group_by(TARGET).agg(
        is_overcounted=pl.any_horizontal(_is_exceeded(name) for name in ("read_bytes", "written_bytes"))
    )
    statistics = read
    for frame in (sample_counts, exceeded, directions):
        statistics = statistics.join(frame, on=TARGET, how="left")
    return statistics.with_columns(
        counts, pl.col("is_overcounted", "has_reads", "has_writes").fill_null(False)
    ).sort(TARGET)  # fmt: skip


def _is_exceeded(name: str) -> pl.Expr:
    """Whether the jobs of a target moved over 1 % more than the target plus the target's largest delta between scrapes.

    The tolerance is necessary because jobs and totals are read at different times.
    """
    is_total = pl.col("job_key").is_null()
    total, jobs = pl.col(name).filter(is_total), pl.col(name).filter(~is_total).sum()
    is_known = (pl.col("flag").filter(is_total).fill_null(FIRST_SEEN) == FIRST_SEEN).all() & (total.len() > 0)
    return (is_known & (jobs > total.sum() * 1.01 + total.max())).fill_null(False)
