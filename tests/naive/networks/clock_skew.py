"""Naive implementation of `iosig.transforms.networks.clock_skew`: file by file, rank by rank."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from statistics import median

Open = tuple[int, int, int | None, float | None]


def estimate_skew(opens: Sequence[Open], process_count: int) -> tuple[str, list[float] | None, int, float | None]:
    """Return the outcome, the offset of each rank, the number of files with offsets, and their spread."""
    if process_count < 2:
        return "one_rank", None, 0, None
    files: dict[int, list[Open]] = defaultdict(list)
    has_opens_of_all_at_once = False
    for row in opens:
        if row[2] is not None and row[2] > 0:
            files[row[0]].append(row)
            has_opens_of_all_at_once |= row[1] < 0
    lags: list[list[float]] = []
    has_untimed = has_opens_of_all_at_once
    for rows in files.values():
        if sorted(row[1] for row in rows) != list(range(process_count)) or len({row[2] for row in rows}) != 1:
            continue
        ends = {row[1]: row[3] for row in rows}
        if any(end is None or not math.isfinite(end) for end in ends.values()):
            has_untimed = True
            continue
        middle = median(end for end in ends.values() if end is not None)
        lags.append([(ends[rank] or 0.0) - middle for rank in range(process_count)])
    if not lags:
        return ("no_times" if has_untimed else "no_collective_open"), None, 0, None
    found = [median(of_file[rank] for of_file in lags) for rank in range(process_count)]
    middle = median(found)
    spreads = [
        1.4826022185056018 * median(abs(of_file[rank] - found[rank]) for of_file in lags)
        for rank in range(process_count)
    ]
    return "corrected", [value - middle for value in found], len(lags), median(spreads) if len(lags) > 1 else None
