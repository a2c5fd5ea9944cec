"""How ranks' clocks differ, by opens that end for all ranks at once; never by calls that do not wait.

Sigovan et al., "A Visual Network Analysis Method for Large Scale Parallel I/O Systems" (IPDPS'13), section V: "MPI file
operations [...] known to be blocking operations, such as File Open [...] should release at approximately the same time
on all the compute nodes", so what their ends differ by is the clocks' doing. What is found is an offset for each rank,
which holds for the whole run: it is both how its clock was set and, where times count from each process's own start,
how late that was. A clock that runs fast or slow is not modelled: with opens at different times it shows as spread.

Nothing tells an open by all ranks from opens of the same file by parts of them, each part for itself (of communicators
that do not span the run): these, too, show as spread where there are other files.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl

from iosig.transforms.arrays import Ints, Reals

Outcome = Literal["corrected", "no_collective_open", "no_times", "one_rank"]

#: of each file and rank, how often it was opened together with others, and when the last open was over
OPENS = pl.Schema(
    {
        "file": pl.Int64(),
        "rank": pl.Int64(),
        "collective_open_count": pl.Int64(),
        "open_ended_s": pl.Float64(),
    }
)
#: of normal errors, the median distance from the median is this share of the standard deviation: its inverse
_DEVIATIONS = 1.4826022185056018


@dataclass(frozen=True, slots=True)
class Skew:
    """How far each rank's clock is ahead of the median rank's, or why that is not known.

    offset_s (ranks): None unless `corrected`; an instant of the rank is at t - offset_s[rank] on the common clock.
    file_count: files by whose opens the clocks were compared. range_s: from the most backward to the most forward
    clock. spread_s: how far the files disagree on a rank, the median over the ranks of the robust standard deviation;
    None with one file.
    """

    outcome: Outcome
    offset_s: Reals | None = None
    file_count: int = 0
    range_s: float | None = None
    spread_s: float | None = None


def opens_of(events: pl.DataFrame, outermost: int | None = None) -> pl.DataFrame:
    """Return the opens (OPENS) among request events, those that wait for all ranks.

    events: columns layer_number, event_kind, is_collective, file_number, rank, ceased_s. outermost: the number of the
    outermost layer, by default the lowest there is: only its clocks are the ranks'. Of a trace in pieces, name it, and
    give the results to `merged`.
    """
    layer = pl.col("layer_number").min() if outermost is None else pl.lit(outermost)
    is_open = (pl.col("event_kind") == "open") & pl.col("is_collective") & pl.col("file_number").is_not_null()
    counted = events.filter(is_open & (pl.col("layer_number") == layer)).select(
        file="file_number",
        rank="rank",
        collective_open_count=pl.lit(1, pl.Int64),
        open_ended_s="ceased_s",
    )
    return merged([counted])


def merged(parts: Iterable[pl.DataFrame]) -> pl.DataFrame:
    """Return opens (OPENS) that were found in pieces of a trace as those of the whole, by file and rank."""
    together = pl.concat([OPENS.to_frame(), *(part.cast(dict(OPENS.items())) for part in parts)])
    return (
        together.group_by("file", "rank")
        .agg(pl.col("collective_open_count").sum(), pl.col("open_ended_s").max())
        .sort("file", "rank")
    )


def offsets(opens: pl.DataFrame, process_count: int) -> Skew:
    """Find how far each rank's clock is ahead, by files that all ranks opened together equally often.

    opens (OPENS): a row per file and rank; rank -1 stands for all ranks together, of which no single times are known.
    Of several files the median counts, so that a few whose ranks did not leave the open together do no harm.
    """
    return offsets_of_runs(opens.with_columns(run=pl.lit(0, pl.Int64)), [process_count])[0]


def offsets_of_runs(opens: pl.DataFrame, process_counts: Sequence[int]) -> list[Skew]:
    """Find how far each rank's clock is ahead, in each of several runs (n).

    opens: OPENS and `run`, the number of the run, from 0. process_counts (n).
    """
    counts = pl.DataFrame({"run": pl.int_range(len(process_counts), eager=True), "process_count": process_counts})
    together = opens.filter(pl.col("collective_open_count") > 0).join(counts, on="run")
    whole = _opened_by_all(together)
    timed = whole.filter(pl.col("open_ended_s").is_finite().fill_null(False).all().over("run", "file"))
    ends = timed.sort("run", "file", "rank").partition_by("run", as_dict=True)
    are_untimed = {*whole["run"], *together.filter(pl.col("rank") < 0)["run"]}
    found = []
    for run, count in enumerate(process_counts):
        if count <= 1:
            found.append(Skew("one_rank"))
        elif (run,) in ends:
            found.append(_of_ends(ends[(run,)]["open_ended_s"].to_numpy().reshape(-1, count)))
        else:
            found.append(Skew("no_times" if run in are_untimed else "no_collective_open"))
    return found


def _opened_by_all(together: pl.DataFrame) -> pl.DataFrame:
    """Keep the files of which every rank has one row, with one and the same count."""
    count, process_count = pl.col("collective_open_count"), pl.col("process_count").first()
    is_whole = (
        (pl.len() == process_count)
        & (pl.col("rank").n_unique() == process_count)
        & (pl.col("rank").min() == 0)
        & (pl.col("rank").max() == process_count - 1)
        & (count.min() == count.max())
    )
    kept = together.group_by("run", "file").agg(is_whole.alias("is_whole")).filter("is_whole")
    return together.join(kept.select("run", "file"), on=["run", "file"], how="semi")


def _of_ends(ends: Reals) -> Skew:
    """Return the skew that the ends (files, ranks) of opens tell, in seconds."""
    lags = ends - np.median(ends, axis=1, keepdims=True)
    offset = np.median(lags, axis=0)
    offset = offset - np.median(offset)
    spread = None
    if len(lags) > 1:
        distance = np.abs(lags - np.median(lags, axis=0))
        spread = float(np.median(np.median(distance, axis=0)) * _DEVIATIONS)
    return Skew("corrected", offset, len(ends), float(np.ptp(offset)), spread)


def corrected(at_s: Reals, rank: Ints, skew: Skew) -> Reals:
    """Return instants (n) of ranks (n) on the common clock; as they are, where the rank's offset is not known."""
    if skew.offset_s is None:
        return at_s
    known = (rank >= 0) & (rank < len(skew.offset_s))
    return at_s - np.where(known, skew.offset_s[np.where(known, rank, 0)], 0.0)


def corrected_events(events: pl.DataFrame, skew: Skew, outermost: int) -> pl.DataFrame:
    """Return request events with those of the outermost layer on the common clock of the ranks.

    Section V: "we adjusted the timings of all application-level I/O events". How the clocks of other layers differ from
    it is not known: no call ends there and at the ranks at once.
    """
    if skew.offset_s is None:
        return events
    offset = pl.Series(skew.offset_s).gather(events["rank"].clip(0, len(skew.offset_s) - 1))
    is_known = (pl.col("layer_number") == outermost) & pl.col("rank").is_between(0, len(skew.offset_s) - 1)
    by = pl.when(is_known).then(offset).otherwise(0.0)
    return events.with_columns(began_s=pl.col("began_s") - by, ceased_s=pl.col("ceased_s") - by)
