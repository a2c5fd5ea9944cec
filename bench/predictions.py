"""Benchmark online prediction: one evaluation of a followed trace against the analysis of the whole trace."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bench import tmio
from bench.harness import Alternative, Comparison, Context, Row, alternate, benchmark, call_cost
from iosig.answers.single.periods import Query, find_periods
from iosig.settings.model import Settings
from iosig.streams.following.followed import FollowedInput
from iosig.streams.following.follower import Follower
from iosig.streams.following.inputs import Opener
from iosig.streams.following.rows import Row as Evaluation
from iosig.streams.landing import ReadOptions
from iosig.warehouse.errors import InputRefused

_FLUSH_COUNT, _FEWER_FLUSHES = 100, 10
#: maximum relative difference between the periods, which are found in the same samples
_MAX_DIFFERENCE = 0.01


@dataclass(frozen=True, slots=True)
class _GrownTrace:
    """A trace that was followed except for its last flush, which has just been appended."""

    path: Path
    followed: FollowedInput

    @classmethod
    def write(cls, path: Path, flush_count: int) -> _GrownTrace:
        """Write a trace with this number of flushes, and follow all flushes but the last."""
        last = tmio.write_flushes(path, flush_count)
        follower = Follower([Opener().trace(path)], lambda _: None, _refuse)
        while follower.step():
            pass
        with path.open("ab") as file:
            file.write(last)
        return cls(path, follower.followed[0])

    def evaluate(self) -> Evaluation:
        """Process the last flush and return its evaluation."""
        rows: list[Evaluation] = []
        Follower([copy.deepcopy(self.followed)], rows.extend, _refuse).step()
        (row,) = rows
        return row


def _refuse(followed_id: str, fault: InputRefused) -> None:
    raise RuntimeError(f"{followed_id}: {fault}")


@benchmark("predictions")
def evaluation(context: Context) -> Iterator[Row]:
    """Evaluate the last flush of a trace, from bytes to row, compared with the whole trace and a shorter one."""
    grown = _GrownTrace.write(context.scratch / "grown.jsonl", _FLUSH_COUNT)
    shorter = _GrownTrace.write(context.scratch / "shorter.jsonl", _FEWER_FLUSHES)
    row = grown.evaluate()
    calls: list[Alternative] = [
        partial(call_cost, grown.evaluate),
        partial(call_cost, shorter.evaluate),
        partial(call_cost, partial(_whole, grown.path, row)),
    ]
    last, last_of_shorter, whole = alternate(calls, context.rounds)
    requests = f"{row['request_count']:,} requests"
    name = f"evaluate the last 1 % of a TMIO trace of {requests} / the same window of the whole trace, from its file"
    yield Comparison(name, max_ratio=1 / 50).row(last, whole)
    # the time depends on the number of new requests only, not on the length of the history
    yield Comparison("… / the last flush of a trace of a tenth of that", max_ratio=1.5).row(last, last_of_shorter)


def _whole(path: Path, row: Evaluation) -> None:
    """Check that `iosig period` finds the row's period in the row's window; raise RuntimeError otherwise."""
    query = Query("write", row["sampling_hz"], (row["window_start_s"], row["window_end_s"]), method=row["method"])
    (period_s,) = find_periods(path, Settings.model_construct(), ReadOptions(), query).rows["period_s"]
    if abs(period_s / row["period_s"] - 1) > _MAX_DIFFERENCE:
        raise RuntimeError(f"the periods differ: {period_s} s, {row['period_s']} s")
