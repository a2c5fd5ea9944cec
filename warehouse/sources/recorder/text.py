"""Read the output of recorder2text: one file per rank, one line per call.

A line is `<start> <end> <function> <level> <type> ( <arguments> )`, in seconds since the start of the run; the type is
0 for POSIX, 1 for MPI-IO, 2 for MPI, 3 for HDF5, 4 for functions of the program. The text lacks the run's start, the
number of ranks and Recorder's version.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import numpy as np
import polars as pl

from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.files.limits import current_limits
from iosig.warehouse.sources.recorder.calls import MODULES, Rank, Run, build_calls, check_count, split_texts
from iosig.warehouse.sources.recorder.files import Files

#: maximum size of a piece of text [B]
PIECE_BYTES = 32 << 20
_NO_CALL = "The line is not in recorder2text's format, or longer than limits.max_line_bytes."
_REPEAT = "The line repeats a call: at one time, a rank makes a call only once."
_REMEDY = "Convert the trace again; the line is skipped, so the rank is incomplete."
_MAX_LEVEL = 255


def open_run(files: Files) -> Run[Rank]:
    """Build the run from the names of the files and the resolution of their times."""
    names = map_ranks(files)
    return Run(None, max(names) + 1, None, _resolution_s(files), tuple(sorted(names)), _decoder(files, names))


def map_ranks(files: Files) -> dict[int, str]:
    """Map each rank to its file by the names of the files."""
    names: dict[int, str] = {}
    for name in files.names:
        rank = int(name.split(".")[0])
        if rank in names:
            raise InputRefused(f"{names[rank]} and {name} are both of rank {rank}.", "Land them separately.")
        names[rank] = name
    if not names:
        raise InputRefused("The Recorder trace has no files.", "Fetch the trace again, with all of its files.")
    return names


def _resolution_s(files: Files) -> float | None:
    """Infer the time resolution [s] from the number of decimals in the first timestamp."""
    for name in sorted(files.names):
        if match := re.match(rb"[0-9]+\.([0-9]{1,12}) ", files.read(name, 64)):
            return float(f"1e-{len(match[1])}")
    raise InputRefused("No file of the trace starts with a call.", "Convert it again with recorder2text.")


def _decoder(files: Files, names: dict[int, str]) -> Callable[[int], Rank]:
    def decode(rank: int) -> Rank:
        return parse_rank(rank, files.read(names[rank]))

    return decode


def parse_rank(rank: int, content: bytes) -> Rank:
    """Parse the calls of a rank, and refuse other lines; a call has the number of its line."""
    pieces: list[pl.DataFrame] = []
    refused: list[pl.DataFrame] = []
    check_count(content.count(b"\n"))
    first = 0
    for piece in _pieces(content):
        lines = _lines(piece)
        fields = _fields(lines, first)
        is_text = (lines.str.len_bytes() <= current_limits().max_line_bytes) & ~lines.str.contains("\0", literal=True)
        is_call = pl.all_horizontal(pl.exclude("line").is_not_null()) & is_text
        pieces.append(fields.filter(is_call))
        refused.append(_refuse_lines(rank, fields.filter(~is_call), lines, first))
        first += lines.len()
    calls = pl.concat(pieces) if pieces else _fields(pl.Series([], dtype=pl.String), 0)
    if calls.is_empty() and first:
        raise InputRefused("No line of its file is a call.", "Convert the trace again with recorder2text.")
    repeats = _find_repeats(calls)
    calls = calls.filter(~pl.col("line").is_in(repeats.implode()))
    columns = calls.rename({"line": "call"}).with_columns(pl.col("call") - 1).to_dict()
    rejected = pl.concat([*refused, _refuse(rank, repeats, _REPEAT)]) if refused else None
    return Rank(build_calls(rank, columns)) if rejected is None else Rank(build_calls(rank, columns), rejected)


def _pieces(content: bytes) -> Iterator[bytes]:
    """Yield the content in pieces of whole lines."""
    place = 0
    while place < len(content):
        end = content.rfind(b"\n", place, place + PIECE_BYTES) + 1 or content.find(b"\n", place) + 1 or len(content)
        piece = content[place:end]
        place = end
        yield piece


def _lines(content: bytes) -> pl.Series:
    """Split text into lines without line ends."""
    ends = np.flatnonzero(np.frombuffer(content, np.uint8) == ord("\n")) + 1
    if not ends.size or ends[-1] != len(content):
        ends = np.append(ends, len(content))
    return split_texts(content, ends).str.strip_suffix("\n").str.strip_suffix("\r")


def _fields(lines: pl.Series, first: int) -> pl.DataFrame:
    """Parse the fields of each line; NULL if malformed."""
    split = lines.str.splitn(" ", 6).struct.unnest()
    start, end, function, level, kind, arguments = (pl.col(f"field_{index}") for index in range(6))
    shown = arguments.str.strip_prefix("(").str.strip_suffix(" )")
    # Without arguments, the brackets are empty; with an empty argument, they contain a space.
    is_closed = (arguments.str.len_bytes() == shown.str.len_bytes() + 3) & ((shown == "") | shown.str.starts_with(" "))
    kinds = {str(number): name for number, name in enumerate(MODULES)}
    return split.select(
        line=pl.int_range(first + 1, first + 1 + pl.len(), dtype=pl.Int64),
        level=_parse_level(level),
        module=kind.replace_strict(kinds, default=None, return_dtype=pl.String),
        function=function,
        arguments=pl.when(is_closed).then(shown.str.strip_prefix(" ")),
        start_s=_parse_seconds(start),
        end_s=_parse_seconds(end),
    )


def _parse_seconds(text: pl.Expr) -> pl.Expr:
    value = text.cast(pl.Float64, strict=False)
    return pl.when(value.is_finite() & (value >= 0)).then(value)


def _parse_level(text: pl.Expr) -> pl.Expr:
    value = text.cast(pl.Int64, strict=False)
    return pl.when(value.is_between(0, _MAX_LEVEL)).then(value)


def _find_repeats(calls: pl.DataFrame) -> pl.Series:
    """Return the lines of calls that equal an earlier call in all fields and take time."""
    start = pl.col("start_s")
    late = calls.filter(start <= start.cum_max().shift())["start_s"]
    candidates = calls.filter(start.is_in(late.implode()) & (pl.col("end_s") > start))
    return candidates.filter(~pl.struct(pl.exclude("line")).is_first_distinct())["line"]


def _refuse_lines(rank: int, faulty: pl.DataFrame, lines: pl.Series, first: int) -> pl.DataFrame:
    numbers = faulty["line"]
    return _refuse(rank, numbers, _NO_CALL).with_columns(raw=lines.gather(numbers - 1 - first))


def _refuse(rank: int, lines: pl.Series, reason: str) -> pl.DataFrame:
    return pl.select(line=lines).with_columns(
        reason=pl.lit(f"Rank {rank}: {reason}"), remedy=pl.lit(_REMEDY), raw=pl.lit(None, pl.String)
    )
