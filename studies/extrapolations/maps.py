"""Where ranks read and write in a file that they share out among them, as the paper's Table 1 has it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import polars as pl

from iosig.transforms.extrapolation.extrapolating import extrapolate_to
from iosig.transforms.extrapolation.result import FittedTrace
from iosig.transforms.traces.expansion import rank_calls
from iosig.transforms.traces.trace import CompressedTrace

#: a row for each offset: of which field it is, at how many ranks, traced or not, whose, and in which iteration
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
#: a share of n that depends on the rank, and a stride along one loop: 960/n*rank + 960*i
_SHARED_OUT = re.compile(r"\d+/n\*rank \+ \d+\*i")
_PLACE = re.compile(r"call \d+ (\S+), argument (\d+)")
#: so many times the largest traced rank count
_FURTHER = (2, 4)
#: in a picture of more ranks nothing can be seen
_MOST_RANKS = 256

_Row = tuple[str, str, int, bool, int, int, int]


def map_rows(known: FittedTrace, traced: Sequence[CompressedTrace]) -> Iterator[_Row]:
    """Yield rows of `SCHEMA`, without the program: of the first field shared out, if there is one."""
    models = (model for model in known.models if _SHARED_OUT.fullmatch(model.formula))
    model = next(models, None)
    place = None if model is None or known.refusals else _PLACE.search(model.field)
    if model is None or place is None:
        return
    function, argument = place[1], int(place[2])
    further = [extrapolate_to(known, times * max(known.rank_counts)).trace for times in _FURTHER]
    chosen = [(trace, True) for trace in traced] + [(trace, False) for trace in further if trace is not None]
    for trace, is_traced in chosen:
        if trace.process_count > _MOST_RANKS:
            continue
        for rank in range(trace.process_count):
            for iteration, offset in enumerate(_offsets(trace, rank, function, argument)):
                yield model.field, model.formula, trace.process_count, is_traced, rank, iteration, offset


def _offsets(trace: CompressedTrace, rank: int, function: str, argument: int) -> list[int]:
    """Return one argument, counted from 1, of all calls of a function that a rank makes."""
    own = rank_calls(trace, rank).filter(pl.col("function") == function)
    numbers = own["arguments"].str.split(" ").list.get(argument - 1, null_on_oob=True).cast(pl.Int64, strict=False)
    return numbers.drop_nulls().to_list()
