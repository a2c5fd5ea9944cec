"""Cumulative counters: from readings to what was moved between them, where falls are told from traffic.

Two kinds of counter need two rules. A server's counter of bytes (`polled`) only ever rises, until the server
restarts. A counter that a monitor sums over nodes (`confirmed`) can take bytes back.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

Numbers = npt.NDArray[Any]
Flags = npt.NDArray[np.int8]
Marks = npt.NDArray[np.bool_]

NONE, RESET, DECREASE, RETRACTED = range(4)
#: what `flag` says for each code
WORDS: dict[int, str | None] = {NONE: None, RESET: "reset", DECREASE: "decrease", RETRACTED: "retracted"}


def words(flags: Flags) -> pl.Series:
    """Return the contract's words for flag codes."""
    return pl.Series("flag", flags, dtype=pl.Int8).replace_strict(WORDS, return_dtype=pl.String)


def rises(values: Numbers) -> Numbers:
    """Return the rise since the reading before, of shape (n,); the first reading's is 0."""
    return np.diff(values, prepend=values[:1])


def polled(values: Numbers, is_first: Marks) -> Flags:
    """Tell which readings of servers' counters have no trustworthy rise since the reading before.

    `values` (n,) [B] are the readings of all counters, one counter after the other, each in the order of time;
    `is_first` (n,) marks the first reading of each.

    A fall below the counter's first reading is RESET: it starts anew. Any other fall is DECREASE, and so is one
    rise that undoes a fall: it lifts the counter at least to where it fell from, by more than all that was
    counted since. Else one faulty low reading would pass for the traffic of years.

    Returns the flag of each reading; those without a flag have a rise of at least 0.
    """
    if not values.size:
        return np.zeros(0, np.int8)
    index = np.arange(values.size)
    before = np.roll(values, 1)
    starts = np.maximum.accumulate(np.where(is_first, index, 0))
    falls = (values < before) & ~is_first
    last_fall = np.maximum.accumulate(np.where(falls, index, 0))
    has_fallen = (last_fall > starts) & (last_fall < index)
    top, base = values[last_fall - 1], values[last_fall]
    recovers = has_fallen & (values >= top) & (before < top) & (values - before > before - base)
    flags = np.zeros(values.size, np.int8)
    flags[falls | recovers] = DECREASE
    flags[falls & (values < values[starts])] = RESET
    return flags


def confirmed(values: Numbers) -> tuple[Numbers, Flags]:
    """Count of a counter that can take bytes back only what all later readings confirm.

    `values` (n,) [B] are the readings of one counter in the order of time. A fall to a value below all readings
    before is RESET: counting starts anew. After a smaller fall the bytes were reported and then withdrawn: a
    reading counts as the least of itself and all later ones up to the next reset.

    Returns the confirmed rise since the reading before (n,) [B], at least 0, and the flags (n,). The first
    reading and those flagged RESET have a rise of 0 that means nothing; RETRACTED ones differ from the raw rise.
    Without a reset the rises sum to the last reading minus the first.
    """
    if not values.size:
        return values, np.zeros(0, np.int8)
    lows = np.minimum.accumulate(values)
    is_reset = np.concatenate([[False], values[1:] < lows[:-1]])
    frame = pl.DataFrame({"value": values, "segment": np.cumsum(is_reset)})
    kept = frame.select(pl.col("value").cum_min(reverse=True).over("segment"))["value"].to_numpy()
    rise = np.where(is_reset, 0, rises(kept))
    flags = np.zeros(values.size, np.int8)
    flags[rise != rises(values)] = RETRACTED
    flags[0] = NONE
    flags[is_reset] = RESET
    return rise, flags
