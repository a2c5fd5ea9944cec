"""Parse the lines of DFTracer's files, with DuckDB if they are sound, otherwise one by one.

A line is one JSON object. Its values are read as text regardless of their JSON type, because some versions of DFTracer
wrote numbers as text and hashes as numbers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from iosig.warehouse.engine_paths import duckdb_path
from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.files.limits import current_limits
from iosig.warehouse.sources.files.opening import open_decompressed, refusing_damage_after
from iosig.warehouse.sources.rows.delimited import LINE, RAW
from iosig.warehouse.sources.rows.engine import InputDatabase
from iosig.warehouse.sources.rows.rejects import ParsedRows, RefusedRow, build_reject_frame, refuse_non_text
from iosig.warehouse.sources.rows.text_blocks import Block

#: size of a block [B], which leaves room for an incomplete last line of one chunk
BLOCK_BYTES = 15 << 20
_CHUNK_BYTES = 1 << 20
#: members of a line that are read; members of `args` that are read, by iosig's names
OF_LINE = ("id", "name", "cat", "pid", "tid", "ts", "dur", "ph")
OF_ARGS = {
    "host_hash": "hhash",
    "host": "hostname",
    "file_hash": "fhash",
    "path": "fname",
    "ret": "ret",
    "count": "count",
    "size": "size",
    "offset": "offset",
    "read_chars": "ret_len",
    "written_chars": "str_len",
    "arg_name": "name",
    "value": "value",
}
#: numeric members of all lines, and sizes of reads and writes
NUMBERS = ("id", "pid", "tid", "ts", "dur")
SIZES = ("ret", "count", "size", "offset", "read_chars", "written_chars")
#: members with few distinct values, which determine the kind of a call
OF_KIND = ("name", "cat", "ph")
INPUT = "input"
_MUST_BE_TEXT = ("name", "cat")
#: names of the lines that map a hash to the name of a file, to the name of a host, or to other text
NAMING = ("FH", "HH", "SH")
#: members of `args` that must be strings; members that may be strings or integers
_NAMES, _HASHES = ("hostname", "fname"), ("hhash", "fhash")
CELLS = pl.Schema(dict.fromkeys((*OF_LINE, *OF_ARGS), pl.String) | {LINE: pl.Int64})
_WORD = r"^[A-Za-z_~:<(*.]"
_NO_WORD = ("true", "false")
#: pattern of numbers, Booleans, objects and lists, which are never names, and are hashes only if they are integers
_NO_NAME = r"^(?:-?[0-9][-+0-9.eE]*|true|false|[\[{](?s:.*))$"
_NO_HASH = r"^(?:-?[0-9]*[-.+][-+0-9.eE]*|[0-9]{1,8}[eE][-+0-9]{0,5}|true|false|[\[{](?s:.*))$"
_FIRST = re.compile(rb"[ \t]*\[[ \t]*\r?\n")
_BLANK = b" \t\r\n"
_REMEDY = "Take the line out, or trace again."


# ---- blocks


@dataclass(slots=True)
class FileEnd:
    """Records whether a file ends with its closing bracket, and whether its compressed data are truncated."""

    is_closed: bool = False
    is_truncated: bool = False


def blocks(path: Path, ending: FileEnd) -> Iterator[Block]:
    """Yield the lines of a plain or compressed file in blocks, without the enclosing brackets.

    The content of a truncated compressed file is yielded, and `ending` records it. Raises InputRefused for other
    damage, and for a line that exceeds the limit.
    """
    number, pending, size = 1, list[bytes](), 0
    with refusing_damage_after(lambda: number - 1 + b"".join(pending).count(b"\n")), open_decompressed(path) as file:
        # `read1` returns the content before the truncation; `read` would drop it
        while content := _read_some(file, ending):
            pending.append(content)
            size += len(content)
            if size < BLOCK_BYTES + _CHUNK_BYTES:
                continue
            whole, pending = _whole_lines(pending)
            size = sum(len(part) for part in pending)
            if whole:
                block, number = _block(whole, number)
                yield block
    if last := _strip_closing_bracket(b"".join(pending), ending):
        yield _block(last, number)[0]


def _read_some(file: IO[bytes], ending: FileEnd) -> bytes:
    """Read a chunk; return an empty one at the end or at a truncation."""
    try:
        return file.read1(_CHUNK_BYTES)  # type: ignore[attr-defined,no-any-return]
    except EOFError:
        ending.is_truncated = True
        return b""


def _whole_lines(parts: Sequence[bytes]) -> tuple[bytes, list[bytes]]:
    """Split content, given in parts, into whole lines and the rest.

    Raises InputRefused for a line that exceeds the limit.
    """
    for place, part in reversed(list(enumerate(parts))):
        if end := part.rfind(b"\n") + 1:
            return b"".join([*parts[:place], part[:end]]), [part[end:], *parts[place + 1 :]]
    if sum(len(part) for part in parts) > current_limits().max_line_bytes:
        raise _too_long()
    return b"", list(parts)


def _strip_closing_bracket(content: bytes, ending: FileEnd) -> bytes:
    """Drop a closing bracket from the last lines, and record it."""
    end = len(content)
    while end and content[end - 1] in _BLANK:
        end -= 1
    start = content.rfind(b"\n", 0, end) + 1
    if content[start:end].strip(_BLANK) != b"]":
        return content
    ending.is_closed = True
    return content[:start]


def _block(content: bytes, number: int) -> tuple[Block, int]:
    """Build a block that starts at line `number`, and return the number of the line after it."""
    if number == 1 and (first := _FIRST.match(content)):
        content, number = content[first.end() :], 2
    count = content.count(b"\n") + (not content.endswith(b"\n") and bool(content))
    return Block(number, count, content), number + count


def _too_long() -> InputRefused:
    return InputRefused(
        f"A line is longer than {current_limits().max_line_bytes:,} bytes (limits.max_line_bytes).",
        "Check that the file is a trace of lines.",
    )


# ---- lines


class Lines(NamedTuple):
    """Whole lines with line ends, and the input and line number of each."""

    content: bytes
    inputs: npt.NDArray[np.int32]
    numbers: npt.NDArray[np.int64]

    @classmethod
    def from_blocks(cls, blocks: Sequence[tuple[int, Block]]) -> Lines:
        """Concatenate the lines of blocks, each with the number of its input."""
        # do not copy a single block
        parts = [block.content if block.content.endswith(b"\n") else block.content + b"\n" for _, block in blocks]
        counts = [block.line_count for _, block in blocks]
        inputs = np.repeat(np.array([number for number, _ in blocks], np.int32), counts)
        numbers = [np.arange(block.line_count) + block.first_line for _, block in blocks]
        return cls(b"".join(parts), inputs, np.concatenate(numbers))

    def filter(self, chosen: npt.NDArray[np.bool_]) -> Lines:
        """Select the lines where `chosen` is true."""
        if chosen.all():
            return self
        edges = np.concatenate([[0], np.flatnonzero(np.frombuffer(self.content, np.uint8) == ord("\n")) + 1])
        places = np.flatnonzero(chosen)
        parts = zip(edges[places].tolist(), edges[places + 1].tolist(), strict=True)
        content = b"".join(self.content[first:end] for first, end in parts)
        return Lines(content, self.inputs[places], self.numbers[places])


def read_with_duckdb(lines: Lines, engine: InputDatabase) -> pl.DataFrame | None:
    """Parse lines with DuckDB, which is ten times faster than parsing them one by one.

    Returns None if the lines must be read one by one.
    """
    import duckdb

    if _is_unusual(lines.content):
        return None
    block = engine.scratch / "block.json"
    block.write_bytes(lines.content)
    try:
        table = engine.connection.sql(
            _query(), params={"place": duckdb_path(block), "max_line_bytes": current_limits().max_line_bytes}
        ).to_arrow_table()
    except duckdb.Error:
        return None
    cells = pl.DataFrame(pl.from_arrow(table))
    if cells.height != len(lines.numbers) or not (_are_words(cells) and _have_valid_names(cells)):
        return None
    return cells.with_columns(pl.Series(LINE, lines.numbers), pl.Series(INPUT, lines.inputs))


def _is_unusual(content: bytes) -> bool:
    """Test for content that DuckDB and `read_one_by_one` read differently: NUL, CR, NaN, infinities."""
    # searching for a single byte is fifty times faster than for an escape that ends in a digit
    has_escaped_nul = b"\\" in content and rb"\u0000" in content
    return has_escaped_nul or any(text in content for text in (b"\x00", b"\r", b"NaN", b"Infinity"))


@cache
def _query() -> str:
    """Build the query that parses a block; it contains only constant names."""
    columns = [f"'{name}': 'varchar'" for name in OF_LINE]
    fields = ", ".join(f'"{field}" varchar' for field in OF_ARGS.values())
    selected = [f'"{name}"' for name in OF_LINE] + [
        f'args."{field}" as "{column}"' for column, field in OF_ARGS.items()
    ]
    return (
        f"select {', '.join(selected)} from read_json($place, format = 'newline_delimited', "
        f"columns = {{{', '.join(columns)}, 'args': 'struct({fields})'}}, "
        "maximum_object_size = $max_line_bytes)"
    )


def _are_words(cells: pl.DataFrame) -> bool:
    """Test whether all mandatory text starts like a word, so that no number, `true` or object is taken for text."""
    return all(
        values.null_count() == 0 and bool(values.str.contains(_WORD).all()) and not values.is_in(_NO_WORD).any()
        for values in (cells[name].unique() for name in _MUST_BE_TEXT)
    )


def _have_valid_names(cells: pl.DataFrame) -> bool:
    """Test whether all names and hashes certainly have a permitted JSON type."""
    naming = cells.filter(pl.col("name").is_in(NAMING))
    checks = [(cells, "host", _NO_NAME), (cells, "path", _NO_NAME), (naming, "arg_name", _NO_NAME)]
    checks += [(cells, "host_hash", _NO_HASH), (cells, "file_hash", _NO_HASH), (naming, "value", _NO_HASH)]
    return not any(rows[name].unique().str.contains(pattern).any() for rows, name, pattern in checks)


def read_one_by_one(lines: Lines) -> ParsedRows:
    """Parse lines of one input one by one, with `raw`; refuse each malformed line."""
    rows: list[list[Any]] = []
    refused: list[RefusedRow] = []
    for number, raw in zip(lines.numbers.tolist(), lines.content.split(b"\n")[:-1], strict=True):
        if raw.strip() in (b"", b"[", b"]"):
            continue
        text = decode_line(raw)
        if text is None or len(raw) > current_limits().max_line_bytes:
            refused.append(refuse_non_text(number, raw.decode("utf-8", "backslashreplace")))
            continue
        try:
            rows.append([*parse_cells(text), number, text])
        except (ValueError, RecursionError) as error:
            refused.append((number, f"The line is not an event: {_describe_error(error)}.", _REMEDY, text))
    cells = pl.DataFrame(rows, schema=CELLS | {RAW: pl.String}, orient="row")
    return ParsedRows(
        cells.with_columns(pl.lit(int(lines.inputs[0]), pl.Int32).alias(INPUT)), build_reject_frame(refused)
    )


def decode_line(raw: bytes) -> str | None:
    """Decode a line as UTF-8; None if it is not text."""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        return None
    return None if "\x00" in text else text.strip()


def _describe_error(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    return f"it is not JSON, {error}" if isinstance(error, json.JSONDecodeError) else str(error)


def parse_cells(text: str) -> list[str | None]:
    """Parse the cells of a line; raise ValueError or RecursionError if it is malformed."""
    document = json.loads(text.removesuffix(","), object_pairs_hook=build_object, parse_constant=refuse_constant)
    if not isinstance(document, dict):
        raise ValueError("it is not an object")
    # Other members are read later from the line itself.
    if "\\u" in text and not _is_storable(json.dumps(document, ensure_ascii=False)):
        raise ValueError("it contains lone surrogates")
    args = document.get("args")
    if not (args is None or isinstance(args, dict)):
        raise ValueError("`args` is not an object")
    for name in _MUST_BE_TEXT:
        if not isinstance(document.get(name), str):
            raise ValueError(f"`{name}` is not text")
    _require_valid_names(args or {}, is_naming=document["name"] in NAMING)
    return [_cell(document.get(name)) for name in OF_LINE] + [
        _cell((args or {}).get(name)) for name in OF_ARGS.values()
    ]


def _require_valid_names(args: dict[str, Any], *, is_naming: bool) -> None:
    """Raise ValueError for a name that is not a string, or a hash that is neither a string nor an integer."""
    for name in (*_NAMES, *(("name",) if is_naming else ())):
        if not isinstance(args.get(name), str | None):
            raise ValueError(f"`{name}` is not text")
    for name in (*_HASHES, *(("value",) if is_naming else ())):
        if isinstance(args.get(name), bool) or not isinstance(args.get(name), str | int | None):
            raise ValueError(f"`{name}` is not a hash")


def build_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Build an object for `json.loads`; raise ValueError for a repeated name."""
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("a name occurs twice in it")
    return members


def refuse_constant(name: str) -> None:
    """Reject NaN and infinities, which JavaScript allows but JSON does not."""
    raise ValueError(f"{name} is not a number")


def _cell(value: object) -> str | None:
    if value is None:
        return None
    text = value if isinstance(value, str) else json.dumps(value)
    if "\x00" in text or (not text.isascii() and not _is_storable(text)):
        raise ValueError("it contains lone surrogates, or NUL")
    return text


def _is_storable(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
