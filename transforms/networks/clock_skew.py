"""Estimate clock offsets between ranks from collective opens, which end at the same time on all ranks.

Sigovan et al., "A Visual Network Analysis Method for Large Scale Parallel I/O Systems" (IPDPS'13), section V: "MPI file
operations [...] known to be blocking operations, such as File Open [...] should release at approximately the same time
on all the compute nodes". Differences between the recorded ends are therefore differences between clocks. The estimate
is one constant offset per rank. It includes the setting of the clock and, if times count from the start of the process,
the delay of this start. Clock drift is not modeled. If opens occur at different times, drift increases the spread.

Section V leaves the common clock of the ranks open: "we still lack a reliable method for eliminating desynchronization
across layers". `estimate_skew` takes the clock of the median rank. If that clock is behind or ahead of the next layer,
all latencies of the first hop are wrong by the difference, and may all be negative. `center_skew` moves the common
clock as far as causality demands: no request is received before it is sent.

A trace does not distinguish an open by all ranks from separate opens of the same file by groups of ranks. If the trace
has other files, such opens also increase the spread.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import polars as pl

from iosig.transforms.arrays import Ints, Reals

Outcome = Literal["corrected", "no_collective_open", "no_times", "one_rank"]

#: columns of opens: number of collective opens, and end of the last open, by file and rank
OPENS = pl.Schema(
    {
        "file": pl.Int64(),
        "rank": pl.Int64(),
        "collective_open_count": pl.Int64(),
        "open_end_s": pl.Float64(),
    }
)
#: standard deviation of a normal distribution divided by its median absolute deviation
_SIGMAS_PER_MAD = 1.4826022185056018


@dataclass(frozen=True, slots=True)
class Skew:
    """Clock offset of each rank relative to the median rank, or the reason why it is unknown.

    Attributes
    ----------
    outcome
        `corrected` if the offsets are known.
    offset_s : (ranks,)
        Offset of each rank [s]: its time t is t - offset_s[rank] on the common clock. None unless `corrected`.
    file_count
        Number of files with opens that were compared.
    range_s
        Difference between the largest and the smallest offset [s].
    spread_s
        Disagreement between files [s]: median over ranks of the robust standard deviation; None with a single file.
    shift_s
        Distance of the common clock from the clock of the median rank [s], see `center_skew`.
    """

    outcome: Outcome
    offset_s: Reals | None = None
    file_count: int = 0
    range_s: float | None = None
    spread_s: float | None = None
    shift_s: float = 0.0


def select_opens(events: pl.DataFrame, outermost: int | None = None) -> pl.DataFrame:
    """Select collective opens from request events.

    Parameters
    ----------
    events
        Columns `layer_number`, `event_kind`, `is_collective`, `file_number`, `rank`, `end_s`.
    outermost
        Number of the outermost layer, which uses the clocks of the ranks; by default, the lowest number in `events`.
        For a trace in chunks, specify this layer, and pass the results to `merge_opens`.

    Returns
    -------
    OPENS
        One row per file and rank.
    """
    layer = pl.col("layer_number").min() if outermost is None else pl.lit(outermost)
    is_open = (pl.col("event_kind") == "open") & pl.col("is_collective") & pl.col("file_number").is_not_null()
    opens = events.filter(is_open & (pl.col("layer_number") == layer)).select(
        file="file_number",
        rank="rank",
        collective_open_count=pl.lit(1, pl.Int64),
        open_end_s="end_s",
    )
    return merge_opens([opens])


def merge_opens(parts: Iterable[pl.DataFrame]) -> pl.DataFrame:
    """Merge the opens of chunks of a trace.

    Parameters
    ----------
    parts : OPENS
        Results of `select_opens`.

    Returns
    -------
    OPENS
        Total count and last end by file and rank, sorted by both.
    """
    opens = pl.concat([OPENS.to_frame(), *(part.cast(dict(OPENS.items())) for part in parts)])
    return (
        opens.group_by("file", "rank")
        .agg(pl.col("collective_open_count").sum(), pl.col("open_end_s").max())
        .sort("file", "rank")
    )


def estimate_skew(opens: pl.DataFrame, process_count: int) -> Skew:
    """Estimate the clock offset of each rank from files that all ranks opened together.

    Parameters
    ----------
    opens : OPENS
        One row per file and rank; rank -1 stands for all ranks, without individual times.
    process_count
        Number of ranks.

    Returns
    -------
    Skew
        Median of the offsets over files; it tolerates a minority of files with opens that were not synchronous.

    Notes
    -----
    A file is used only if every rank opened it, all equally often.

    References
    ----------
    Sigovan et al., IPDPS'13, section V.
    """
    return estimate_skew_by_run(opens.with_columns(run=pl.lit(0, pl.Int64)), [process_count])[0]


def estimate_skew_by_run(opens: pl.DataFrame, process_counts: Sequence[int]) -> list[Skew]:
    """Estimate the clock offsets of several runs; see `estimate_skew`.

    Parameters
    ----------
    opens : OPENS and `run`
        One row per run, file and rank; runs are numbered from 0.
    process_counts : (runs,)
        Number of ranks of each run.

    Returns
    -------
    list[Skew]
        Offsets of each run.
    """
    counts = pl.DataFrame({"run": pl.int_range(len(process_counts), eager=True), "process_count": process_counts})
    collective = opens.filter(pl.col("collective_open_count") > 0).join(counts, on="run")
    complete = _keep_whole_files(collective)
    timed = complete.filter(pl.col("open_end_s").is_finite().fill_null(False).all().over("run", "file"))
    ends = timed.sort("run", "file", "rank").partition_by("run", as_dict=True)
    runs_without_times = {*complete["run"], *collective.filter(pl.col("rank") < 0)["run"]}
    skews = []
    for run, count in enumerate(process_counts):
        if count <= 1:
            skews.append(Skew("one_rank"))
        elif (run,) in ends:
            skews.append(_estimate_from_ends(ends[(run,)]["open_end_s"].to_numpy().reshape(-1, count)))
        else:
            skews.append(Skew("no_times" if run in runs_without_times else "no_collective_open"))
    return skews


def _keep_whole_files(collective: pl.DataFrame) -> pl.DataFrame:
    """Keep the files with exactly one row per rank and the same number of opens in each row."""
    count, process_count = pl.col("collective_open_count"), pl.col("process_count").first()
    is_opened_by_all = (
        (pl.len() == process_count)
        & (pl.col("rank").n_unique() == process_count)
        & (pl.col("rank").min() == 0)
        & (pl.col("rank").max() == process_count - 1)
        & (count.min() == count.max())
    )
    complete = (
        collective.group_by("run", "file").agg(is_opened_by_all.alias("is_opened_by_all")).filter("is_opened_by_all")
    )
    return collective.join(complete.select("run", "file"), on=["run", "file"], how="semi")


def _estimate_from_ends(ends: Reals) -> Skew:
    """Estimate the skew from the ends of opens (files, ranks) [s]."""
    lags_s = ends - np.median(ends, axis=1, keepdims=True)
    offset = np.median(lags_s, axis=0)
    offset = offset - np.median(offset)
    spread = None
    if len(lags_s) > 1:
        distance = np.abs(lags_s - np.median(lags_s, axis=0))
        spread = float(np.median(np.median(distance, axis=0)) * _SIGMAS_PER_MAD)
    return Skew("corrected", offset, len(ends), float(np.ptp(offset)), spread)


def center_skew(skew: Skew, forward_s: float, backward_s: float, rounding_s: float = 0.0) -> Skew:
    """Move the common clock of the ranks by the least amount that makes requests causal in the next layer.

    Parameters
    ----------
    skew
        Estimated offsets relative to the median rank.
    forward_s, backward_s
        Shortest times of corrected requests, from the start of a request to its first event in the next layer, and from
        the end of that event to the end of the request [s]; inf if unknown.
    rounding_s
        Maximum rounding error of a corrected time [s], by which the clock is moved in addition.

    Returns
    -------
    Skew
        Offsets with nonnegative forward times. Backward times stay negative if both cannot hold, as for requests that
        return before they are processed.

    Notes
    -----
    Not in the paper, which counts negative latencies as the lowest value. The method is an improvement of its section
    V. The remaining error is at most the shortest true forward or backward time, if the rounding error is negligible.
    """
    # requests that return before they are processed say nothing about the clock
    shift_s = max(-forward_s, min(0.0, backward_s) if forward_s + backward_s >= 0 else 0.0)
    if skew.offset_s is None or not shift_s:
        return skew
    shift_s += rounding_s if shift_s == -forward_s else 0.0
    return replace(skew, offset_s=skew.offset_s + shift_s, shift_s=shift_s)


def correct_times(at_s: Reals, rank: Ints, skew: Skew) -> Reals:
    """Convert times of ranks to the common clock.

    Parameters
    ----------
    at_s : (n,)
        Times on the clocks of the ranks [s].
    rank : (n,)
        Rank of each time.
    skew
        Estimated offsets.

    Returns
    -------
    (n,)
        Corrected times; unchanged if the rank's offset is unknown.
    """
    if skew.offset_s is None:
        return at_s
    is_known = (rank >= 0) & (rank < len(skew.offset_s))
    return at_s - np.where(is_known, skew.offset_s[np.where(is_known, rank, 0)], 0.0)


def correct_events(events: pl.DataFrame, skew: Skew, outermost: int) -> pl.DataFrame:
    """Convert request events of the outermost layer to the common clock of the ranks.

    Parameters
    ----------
    events
        Columns `layer_number`, `rank`, `start_s`, `end_s`, and any others.
    skew
        Estimated offsets.
    outermost
        Number of the outermost layer.

    Returns
    -------
    pl.DataFrame
        All events, in the same order.

    Notes
    -----
    Section V: "we adjusted the timings of all application-level I/O events". The offsets of other layers are unknown,
    since no call ends at the same time in these layers and on the ranks.
    """
    if skew.offset_s is None:
        return events
    offset = pl.Series(skew.offset_s).gather(events["rank"].clip(0, len(skew.offset_s) - 1))
    is_known = (pl.col("layer_number") == outermost) & pl.col("rank").is_between(0, len(skew.offset_s) - 1)
    offset_s = pl.when(is_known).then(offset).otherwise(0.0)
    return events.with_columns(start_s=pl.col("start_s") - offset_s, end_s=pl.col("end_s") - offset_s)
