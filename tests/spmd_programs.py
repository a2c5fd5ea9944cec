"""Small SPMD programs, drawn by Hypothesis, and the calls that a tracer would log of their ranks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl
from hypothesis import strategies as st

from iosig.transforms.traces.compression import compress
from iosig.transforms.traces.requests import CallFormat, CallFormats
from iosig.transforms.traces.trace import CompressedTrace
from tests.naive.traces.totals import Made

#: how the functions below are logged
FORMS = CallFormats(
    {
        "open": CallFormat("POSIX", "open", 0),
        "write": CallFormat("POSIX", "write", 0, count_at=2),
        "pwrite": CallFormat("POSIX", "write", 0, count_at=2),
        "fread": CallFormat("POSIX", "read", 3, count_at=2, size_at=1),
        "fprintf": CallFormat("POSIX", "write", 0, count_at=1, surplus=1),
        "MPI_File_open": CallFormat("MPIIO", "open", 4, path_at=1),
        "MPI_File_write": CallFormat("MPIIO", "write", 0, count_at=2, type_at=3),
        "MPI_File_close": CallFormat("MPIIO", "close", 0),
    },
    {"MPI_BYTE": 1, "MPI_INT8_T": 1, "MPI_DOUBLE": 8},
)


@dataclass(frozen=True)
class Ranked:
    """The calls of a rank as `compress` takes them."""

    rank: int
    signatures: pl.DataFrame
    order: npt.NDArray[np.int32]
    start_s: npt.NDArray[np.float64]
    end_s: npt.NDArray[np.float64]


def ranked(rank: int, made: Sequence[Made]) -> Ranked:
    """Return a rank's calls: outer ones a second each, and those within them a tenth, one after the other."""
    rows = [(level, module, function, text) for _, module, function, level, text in made]
    distinct = list(dict.fromkeys(rows))
    signatures = pl.DataFrame(
        distinct,
        schema={"level": pl.Int64, "module": pl.String, "function": pl.String, "arguments": pl.String},
        orient="row",
    )
    places = {row: place for place, row in enumerate(distinct)}
    outer, inner, times = -1, 0, []
    for level, *_ in rows:
        outer, inner = (outer + 1, 0) if level == 0 else (max(outer, 0), inner + 1)
        times.append((float(outer), outer + 0.9) if level == 0 else (outer + inner * 1e-3, outer + inner * 1e-3 + 5e-4))
    began, ceased = np.array(times).reshape(-1, 2).T
    return Ranked(rank, signatures, np.array([places[row] for row in rows], np.int32), began, ceased)


def compressed(process_count: int, made: Sequence[Made]) -> CompressedTrace:
    """Return the calls of all ranks compressed."""
    ranks = [[call for call in made if call[0] == rank] for rank in range(process_count)]
    return compress(process_count, [ranked(rank, own) for rank, own in enumerate(ranks)])


_PATHS = (
    "/s/shared",
    "/s/f.{rank:08d}",
    "/s/g_{group}",
    "/s/r{rank}/step{i}",
    "/s/f.{i:08d}",
    "/s/f_7",
    "f_{odd}",
    "???",
)
_SIZES = ("{c}", "{big}", "{rank}", "{i}", "{both}", "-1", "x")


@st.composite
def programs(draw: st.DrawFn, most_ranks: int = 8) -> tuple[int, list[Made]]:
    """Draw a program; return its processes and the calls of all ranks, in order."""
    process_count = draw(st.integers(1, most_ranks))
    phases = draw(
        st.lists(
            st.tuples(
                st.sampled_from(["posix", "mpi", "stream", "barrier", "handles"]),
                st.sampled_from(_PATHS),
                st.sampled_from(_SIZES),
                st.sampled_from(["{k}", "{k}", "{rank}", "{odd}"]),
                st.booleans(),
                st.sampled_from(["all", "all", "first", "others"]),
            ),
            min_size=1,
            max_size=4,
        )
    )
    constant = draw(st.integers(0, 3))
    made: list[Made] = []
    for rank in range(process_count):
        counter = 0
        for operation, path, size, count, nested, who in phases:
            if who != "all" and (rank == 0) != (who == "first"):
                continue
            values = {"rank": rank, "group": rank // 2, "odd": rank % 2, "k": constant, "c": 512, "big": 1 << 50}
            own = _phase(operation, path, size, int(count.format(**values)), nested, values, counter)
            made += [(rank, module, function, level, text) for module, function, level, text in own]
            counter += operation == "handles"
    return process_count, made


def _phase(
    operation: str, path: str, size: str, iterations: int, nested: bool, values: dict[str, int], counter: int
) -> Iterator[tuple[str, str, int, str]]:
    def shown(text: str, i: int) -> str:
        return text.format(**values, i=i, both=values["rank"] * 100 + i)

    if operation == "barrier":
        yield "MPI", "MPI_Barrier", 0, "MPI_COMM_WORLD"
    elif operation in ("mpi", "handles"):
        handle = "{rank}-" + str(counter)
        yield "MPIIO", "MPI_File_open", 0, shown("MPI_COMM_WORLD " + path + " 9 %p " + handle, 0)
        for i in range(iterations):
            kind = "MPI_INT8_T" if nested else "MPI_DOUBLE"
            yield "MPIIO", "MPI_File_write", 0, shown(handle + " %p " + size + " " + kind + " [?]", i)
            if nested:
                yield "POSIX", "pwrite", 1, shown(path + " %p " + size + " {i}", i)
        yield "MPIIO", "MPI_File_close", 0, shown(handle, 0)
    else:
        yield "POSIX", "open", 0, shown(path + " 66 420", 0)
        for i in range(iterations):
            if operation == "stream":
                yield "POSIX", "fread", 0, shown("%p " + size + " {c} " + path, i)
                yield "POSIX", "fprintf", 0, shown(path + " " + size, i)
            else:
                yield "POSIX", "write", 0, shown(path + " %p " + size, i)
