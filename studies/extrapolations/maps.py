"""Collect the offsets of ranks in a shared file, as in Table 1 of the paper."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import polars as pl

from iosig.transforms.extrapolation.extrapolating import extrapolate_to
from iosig.transforms.extrapolation.result import FittedTrace
from iosig.transforms.traces.expansion import rank_calls
from iosig.transforms.traces.trace import CompressedTrace

#: schema with one row per offset
SCHEMA = {
    "program": pl.String,
    "field": pl.String,
    "formula": pl.String,
    "process_count": pl.Int64,
    "is_traced": pl.Boolean,
    "rank": pl.Int64,
    "iteration": pl.Int64,
    "offset": pl.Int64,
}
#: formula with a term in rank / n and a stride along one loop: 960/n*rank + 960*i
_SHARED_OUT = re.compile(r"\d+/n\*rank \+ \d+\*i")
_PLACE = re.compile(r"call \d+ (\S+), argument (\d+)")
#: extrapolated rank counts, as multiples of the largest traced one
_RANK_COUNT_MULTIPLES = (2, 4)
#: maximum number of ranks that are legible in a panel
_MAX_RANKS = 256

_Row = tuple[str, str, int, bool, int, int, int]


def generate_map_rows(fitted: FittedTrace, traced: Sequence[CompressedTrace]) -> Iterator[_Row]:
    """Yield rows of `SCHEMA` (without the program) for the first field that is shared among ranks, if any."""
    models = (model for model in fitted.models if _SHARED_OUT.fullmatch(model.formula))
    model = next(models, None)
    place = None if model is None or fitted.refusals else _PLACE.search(model.field)
    if model is None or place is None:
        return
    function, argument = place[1], int(place[2])
    extrapolated = [extrapolate_to(fitted, times * max(fitted.rank_counts)).trace for times in _RANK_COUNT_MULTIPLES]
    traces = [(trace, True) for trace in traced] + [(trace, False) for trace in extrapolated if trace is not None]
    for trace, is_traced in traces:
        if trace.process_count > _MAX_RANKS:
            continue
        for rank in range(trace.process_count):
            for iteration, offset in enumerate(_collect_argument(trace, rank, function, argument)):
                yield model.field, model.formula, trace.process_count, is_traced, rank, iteration, offset


def _collect_argument(trace: CompressedTrace, rank: int, function: str, argument: int) -> list[int]:
    """Return the values of one argument (counted from 1) in all calls of a function by a rank."""
    calls = rank_calls(trace, rank).filter(pl.col("function") == function)
    numbers = calls["arguments"].str.split(" ").list.get(argument - 1, null_on_oob=True).cast(pl.Int64, strict=False)
    return numbers.drop_nulls().to_list()
