"""Compute deltas of cumulative counters, and distinguish decreases from traffic.

Two kinds of counter need two rules. A server's byte counter (`flag_server_counters`) is monotonic until the server
restarts. A counter that a monitor sums over nodes (`confirm_increases`) can retract bytes.
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
#: value of the column `flag` for each code
WORDS: dict[int, str | None] = {NONE: None, RESET: "reset", DECREASE: "decrease", RETRACTED: "retracted"}


def decode_flags(flags: Flags) -> pl.Series:
    """Map flag codes to the contract's values of the column `flag`."""
    return pl.Series("flag", flags, dtype=pl.Int8).replace_strict(WORDS, return_dtype=pl.String)


def compute_deltas(values: Numbers) -> Numbers:
    """Difference to the previous reading (n,); 0 for the first reading."""
    return np.diff(values, prepend=values[:1])


def flag_server_counters(values: Numbers, is_first: Marks) -> Flags:
    """Flag the readings of servers' counters without a trustworthy delta.

    `values` (n,) [B] are the readings of all counters, counter by counter, each in time order; `is_first` (n,) marks
    the first reading of each.

    A decrease below the counter's first reading is flagged RESET, because the counter restarted. Any other decrease is
    flagged DECREASE. So is one later increase that undoes the decrease: it starts below the value before the decrease,
    reaches that value or more, and exceeds the total counted since the decrease. Without this rule, the recovery from
    one faulty low reading would be counted as the traffic of years.

    Returns the flag of each reading; the delta of an unflagged reading is never negative.
    """
    if not values.size:
        return np.zeros(0, np.int8)
    index = np.arange(values.size)
    before = np.roll(values, 1)
    starts = np.maximum.accumulate(np.where(is_first, index, 0))
    decreases = (values < before) & ~is_first
    last_decrease = np.maximum.accumulate(np.where(decreases, index, 0))
    has_decreased = (last_decrease > starts) & (last_decrease < index)
    top, base = values[last_decrease - 1], values[last_decrease]
    recovers = has_decreased & (values >= top) & (before < top) & (values - before > before - base)
    flags = np.zeros(values.size, np.int8)
    flags[decreases | recovers] = DECREASE
    flags[decreases & (values < values[starts])] = RESET
    return flags


def confirm_increases(values: Numbers) -> tuple[Numbers, Flags]:
    """Count only the bytes that all later readings of a retracting counter confirm.

    `values` (n,) [B] are the readings of one counter in time order. A decrease below all earlier readings is flagged
    RESET, because the counter restarted. A smaller decrease means that bytes were reported and then withdrawn. The
    confirmed value of a reading is the minimum of itself and all later ones up to the next reset.

    Returns the confirmed, non-negative delta to the previous reading (n,) [B], and the flags (n,). The delta of the
    first reading and of those flagged RESET is 0 and has no meaning. For readings flagged RETRACTED, the confirmed
    delta differs from the raw one. Without a reset, the deltas sum to the last reading minus the first.
    """
    if not values.size:
        return values, np.zeros(0, np.int8)
    lows = np.minimum.accumulate(values)
    is_reset = np.concatenate([[False], values[1:] < lows[:-1]])
    frame = pl.DataFrame({"value": values, "segment": np.cumsum(is_reset)})
    confirmed = frame.select(pl.col("value").cum_min(reverse=True).over("segment"))["value"].to_numpy()
    delta = np.where(is_reset, 0, compute_deltas(confirmed))
    flags = np.zeros(values.size, np.int8)
    flags[delta != compute_deltas(values)] = RETRACTED
    flags[0] = NONE
    flags[is_reset] = RESET
    return delta, flags
