"""What recorder2text prints: a file for each rank, a line for each call.

A line is `<start> <end> <function> <level> <type> ( <arguments> )`, in seconds since the run began; the type is 0
for POSIX, 1 for MPI-IO, 2 for MPI, 3 for HDF5, 4 for functions of the program. There is no more in it than that:
when the run began, how many ranks it had and Recorder's version are not.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import numpy as np
import polars as pl

from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.recorder.calls import MODULES, Rank, Run, calls, check_count, texts
from iosig.warehouse.sources.recorder.files import Files

#: bytes of text that are looked at at once
PIECE_BYTES = 32 << 20
_NO_CALL = "The line is none of recorder2text's."
_REMEDY = "Convert the trace anew; the line is left out, and the rank is not whole."
_MOST_LEVEL = 255


def opened(files: Files) -> Run[Rank]:
    """Return what the names of the files and their first line tell of the run, and how to read one of its ranks."""
    names = ranked(files)
    return Run(None, max(names) + 1, None, _resolution_s(files), tuple(sorted(names)), _decoder(files, names))


def ranked(files: Files) -> dict[int, str]:
    """Return the files by the rank that their names say."""
    names: dict[int, str] = {}
    for name in files.names:
        rank = int(name.split(".")[0])
        if rank in names:
            raise InputRefused(f"{names[rank]} and {name} are both of rank {rank}.", "Land them apart.")
        names[rank] = name
    if not names:
        raise InputRefused("The Recorder trace has no files.", "Fetch the trace anew, with all of its files.")
    return names


def _resolution_s(files: Files) -> float | None:
    """Return what the last decimal of the first time of the first file with calls stands for."""
    for name in sorted(files.names):
        if found := re.match(rb"[0-9]+\.([0-9]{1,12}) ", files.read(name, 64)):
            return float(f"1e-{len(found[1])}")
    raise InputRefused("No file of the trace begins with a call.", "Convert it anew with recorder2text.")


def _decoder(files: Files, names: dict[int, str]) -> Callable[[int], Rank]:
    def decode(rank: int) -> Rank:
        return parsed(rank, files.read(names[rank]))

    return decode


def parsed(rank: int, content: bytes) -> Rank:
    """Return the calls of a rank, and its lines that are none; a call's number is that of its line."""
    pieces: list[pl.DataFrame] = []
    refused: list[pl.DataFrame] = []
    check_count(content.count(b"\n"))
    first = 0
    for piece in _pieces(content):
        lines = _lines(piece)
        fields = _fields(lines, first)
        is_call = pl.all_horizontal(pl.exclude("line").is_not_null())
        pieces.append(fields.filter(is_call))
        refused.append(_refused(rank, fields.filter(~is_call), lines, first))
        first += lines.len()
    found = pl.concat(pieces) if pieces else _fields(pl.Series([], dtype=pl.String), 0)
    if found.is_empty() and first:
        raise InputRefused("No line of its file is a call.", "Convert the trace anew with recorder2text.")
    columns = found.rename({"line": "call"}).with_columns(pl.col("call") - 1).to_dict()
    rejected = pl.concat(refused) if refused else None
    return Rank(calls(rank, columns)) if rejected is None else Rank(calls(rank, columns), rejected)


def _pieces(content: bytes) -> Iterator[bytes]:
    """Yield the content in pieces that end with a line."""
    place = 0
    while place < len(content):
        end = content.rfind(b"\n", place, place + PIECE_BYTES) + 1 or content.find(b"\n", place) + 1 or len(content)
        piece = content[place:end]
        place = end
        yield piece


def _lines(content: bytes) -> pl.Series:
    """Return the lines of a text, without their ends."""
    ends = np.flatnonzero(np.frombuffer(content, np.uint8) == ord("\n")) + 1
    if not ends.size or ends[-1] != len(content):
        ends = np.append(ends, len(content))
    return texts(content, ends).str.strip_suffix("\n").str.strip_suffix("\r")


def _fields(lines: pl.Series, first: int) -> pl.DataFrame:
    """Return the fields of each line, NULL where they are not as they should be."""
    split = lines.str.splitn(" ", 6).struct.unnest()
    began, ceased, function, level, kind, rest = (pl.col(f"field_{index}") for index in range(6))
    shown = rest.str.strip_prefix("(").str.strip_suffix(" )")
    # No argument is nothing between the brackets; one that is empty is a space.
    is_closed = (rest.str.len_bytes() == shown.str.len_bytes() + 3) & ((shown == "") | shown.str.starts_with(" "))
    kinds = {str(number): name for number, name in enumerate(MODULES)}
    return split.select(
        line=pl.int_range(first + 1, first + 1 + pl.len(), dtype=pl.Int64),
        level=_whole(level),
        module=kind.replace_strict(kinds, default=None, return_dtype=pl.String),
        function=function,
        arguments=pl.when(is_closed).then(shown.str.strip_prefix(" ")),
        start_s=_seconds(began),
        end_s=_seconds(ceased),
    )


def _seconds(text: pl.Expr) -> pl.Expr:
    value = text.cast(pl.Float64, strict=False)
    return pl.when(value.is_finite() & (value >= 0)).then(value)


def _whole(text: pl.Expr) -> pl.Expr:
    value = text.cast(pl.Int64, strict=False)
    return pl.when(value.is_between(0, _MOST_LEVEL)).then(value)


def _refused(rank: int, faulty: pl.DataFrame, lines: pl.Series, first: int) -> pl.DataFrame:
    return faulty.select(
        "line",
        reason=pl.lit(f"Rank {rank}: {_NO_CALL}"),
        remedy=pl.lit(_REMEDY),
        raw=lines.gather(faulty["line"] - 1 - first),
    )
