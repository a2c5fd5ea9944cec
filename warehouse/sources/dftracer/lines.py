"""Lines of DFTracer's files: many at once where they are sound, one by one where they are not.

A line is one JSON object. What is read of it comes as text, whatever it is in the JSON: DFTracer has written numbers
as text, and hashes as numbers.
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
from iosig.warehouse.sources.files.limits import in_force
from iosig.warehouse.sources.files.opening import open_bytes, refusing_damage_after
from iosig.warehouse.sources.rows.delimited import LINE, RAW
from iosig.warehouse.sources.rows.engine import Engine
from iosig.warehouse.sources.rows.rejects import Refused, Sifted, frame_of, no_text
from iosig.warehouse.sources.rows.text_blocks import Block

#: text that is read at once; a last line that is left for the next time may be as long as a chunk
BLOCK_BYTES = 15 << 20
_CHUNK_BYTES = 1 << 20
#: what is read of a line: its own members, and those of `args`, by our names
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
    "told": "name",
    "value": "value",
}
#: of these, what are numbers; of reads and writes also their sizes
NUMBERS = ("id", "pid", "tid", "ts", "dur")
SIZES = ("ret", "count", "size", "offset", "read_chars", "written_chars")
#: of these, what a program has few of: they say what kind of a call a line is
OF_KIND = ("name", "cat", "ph")
INPUT = "input"
_MUST_BE_TEXT = ("name", "cat")
#: lines that give a hash the name that it stands for: of a file, of a host, of any other text
NAMING = ("FH", "HH", "SH")
#: of `args`: names are text, and hashes text or whole numbers
_NAMES, _HASHES = ("hostname", "fname"), ("hhash", "fhash")
CELLS = pl.Schema(dict.fromkeys((*OF_LINE, *OF_ARGS), pl.String) | {LINE: pl.Int64})
_WORD = r"^[A-Za-z_~:<(*.]"
_NO_WORD = ("true", "false")
#: what a number, a boolean, an object or a list may look like as text: no name, and of these a hash only if it is whole
_NO_NAME = r"^(?:-?[0-9][-+0-9.eE]*|true|false|[\[{](?s:.*))$"
_NO_HASH = r"^(?:-?[0-9]*[-.+][-+0-9.eE]*|[0-9]{1,8}[eE][-+0-9]{0,5}|true|false|[\[{](?s:.*))$"
_FIRST = re.compile(rb"(?:\xef\xbb\xbf)?[ \t]*\[[ \t]*\r?\n")
_BLANK = b" \t\r\n"
_REMEDY = "Take the line out, or trace again."


# ---- blocks


@dataclass(slots=True)
class Ending:
    """How a file ended, once all its blocks were taken: with its closing bracket, or in the midst of a packed part."""

    is_closed: bool = False
    is_cut: bool = False


def blocks(path: Path, ending: Ending) -> Iterator[Block]:
    """Yield the lines of a file, plain or compressed, many at a time, without the brackets around them.

    What a packed file that breaks off holds is yielded, and `ending` says so. Raises InputRefused for other damage,
    and for a line that is longer than the limit.
    """
    number, held, size = 1, list[bytes](), 0
    with refusing_damage_after(lambda: number - 1 + b"".join(held).count(b"\n")), open_bytes(path) as file:
        # what comes before a break is given: `read` would keep it for itself
        while content := _read_some(file, ending):
            held.append(content)
            size += len(content)
            if size < BLOCK_BYTES + _CHUNK_BYTES:
                continue
            whole, held = _whole_lines(held)
            size = sum(len(each) for each in held)
            if whole:
                found, number = _block(whole, number)
                yield found
    if last := _unclosed(b"".join(held), ending):
        yield _block(last, number)[0]


def _read_some(file: IO[bytes], ending: Ending) -> bytes:
    """Return some more of a file; nothing at its end, or where it breaks off."""
    try:
        return file.read1(_CHUNK_BYTES)  # type: ignore[attr-defined,no-any-return]
    except EOFError:
        ending.is_cut = True
        return b""


def _whole_lines(parts: Sequence[bytes]) -> tuple[bytes, list[bytes]]:
    """Return the whole lines of a content in parts, and what is behind them.

    Raises InputRefused for a line that is longer than the limit.
    """
    for place, part in reversed(list(enumerate(parts))):
        if end := part.rfind(b"\n") + 1:
            return b"".join([*parts[:place], part[:end]]), [part[end:], *parts[place + 1 :]]
    if sum(len(part) for part in parts) > in_force().max_line_bytes:
        raise _too_long()
    return b"", list(parts)


def _unclosed(content: bytes, ending: Ending) -> bytes:
    """Return the last lines without a closing bracket, and note whether there is one."""
    end = len(content)
    while end and content[end - 1] in _BLANK:
        end -= 1
    start = content.rfind(b"\n", 0, end) + 1
    if content[start:end].strip(_BLANK) != b"]":
        return content
    ending.is_closed = True
    return content[:start]


def _block(content: bytes, number: int) -> tuple[Block, int]:
    """Return a block that begins with the line of that number, and the number of the first line behind it."""
    if number == 1 and (first := _FIRST.match(content)):
        content, number = content[first.end() :], 2
    count = content.count(b"\n") + (not content.endswith(b"\n") and bool(content))
    return Block(number, count, content), number + count


def _too_long() -> InputRefused:
    return InputRefused(
        f"A line is longer than {in_force().max_line_bytes:,} bytes, which is limits.max_line_bytes.",
        "Check that the file is a trace of lines.",
    )


# ---- lines


class Lines(NamedTuple):
    """Whole lines, each with its end: their bytes, of which input each is, and its number there."""

    content: bytes
    inputs: npt.NDArray[np.int32]
    numbers: npt.NDArray[np.int64]

    @classmethod
    def of(cls, blocks: Sequence[tuple[int, Block]]) -> Lines:
        """Return the lines of blocks, each with the number of its input."""
        # one block by itself is not copied
        parts = [each.content if each.content.endswith(b"\n") else each.content + b"\n" for _, each in blocks]
        counts = [block.line_count for _, block in blocks]
        inputs = np.repeat(np.array([number for number, _ in blocks], np.int32), counts)
        numbers = [np.arange(block.line_count) + block.first_line for _, block in blocks]
        return cls(b"".join(parts), inputs, np.concatenate(numbers))

    def only(self, chosen: npt.NDArray[np.bool_]) -> Lines:
        """Return some of the lines."""
        if chosen.all():
            return self
        edges = np.concatenate([[0], np.flatnonzero(np.frombuffer(self.content, np.uint8) == ord("\n")) + 1])
        places = np.flatnonzero(chosen)
        parts = zip(edges[places].tolist(), edges[places + 1].tolist(), strict=True)
        content = b"".join(self.content[first:end] for first, end in parts)
        return Lines(content, self.inputs[places], self.numbers[places])


def quick(lines: Lines, engine: Engine) -> pl.DataFrame | None:
    """Return the cells of lines, read by DuckDB, which is ten times as fast as one line after the other.

    None if anything in them needs a closer look.
    """
    import duckdb

    if _is_unusual(lines.content):
        return None
    block = engine.scratch / "block.json"
    block.write_bytes(lines.content)
    try:
        found = engine.connection.sql(
            _query(), params={"place": duckdb_path(block), "max_line_bytes": in_force().max_line_bytes}
        ).to_arrow_table()
    except duckdb.Error:
        return None
    cells = pl.DataFrame(pl.from_arrow(found))
    if cells.height != len(lines.numbers) or not (_are_words(cells) and _are_named(cells)):
        return None
    return cells.with_columns(pl.Series(LINE, lines.numbers), pl.Series(INPUT, lines.inputs))


def _is_unusual(content: bytes) -> bool:
    """Return whether the content has what DuckDB reads otherwise than `careful`: NUL, CR, NaN and infinities."""
    # a single byte is found fifty times as fast as an escape that ends in a digit
    has_escaped_nul = b"\\" in content and rb"\u0000" in content
    return has_escaped_nul or any(text in content for text in (b"\x00", b"\r", b"NaN", b"Infinity"))


@cache
def _query() -> str:
    """Return the query of a block; the names in it are ours and DFTracer's."""
    columns = [f"'{name}': 'varchar'" for name in OF_LINE]
    fields = ", ".join(f'"{theirs}" varchar' for theirs in OF_ARGS.values())
    selected = [f'"{name}"' for name in OF_LINE] + [f'args."{theirs}" as "{ours}"' for ours, theirs in OF_ARGS.items()]
    return (
        f"select {', '.join(selected)} from read_json($place, format = 'newline_delimited', "
        f"columns = {{{', '.join(columns)}, 'args': 'struct({fields})'}}, "
        "maximum_object_size = $max_line_bytes)"
    )


def _are_words(cells: pl.DataFrame) -> bool:
    """Return whether all that must be text begins as a word does: a number, `true` or an object would pass for text."""
    return all(
        values.null_count() == 0 and bool(values.str.contains(_WORD).all()) and not values.is_in(_NO_WORD).any()
        for values in (cells[name].unique() for name in _MUST_BE_TEXT)
    )


def _are_named(cells: pl.DataFrame) -> bool:
    """Return whether no name or hash could be something else in the JSON."""
    naming = cells.filter(pl.col("name").is_in(NAMING))
    asked = [(cells, "host", _NO_NAME), (cells, "path", _NO_NAME), (naming, "told", _NO_NAME)]
    asked += [(cells, "host_hash", _NO_HASH), (cells, "file_hash", _NO_HASH), (naming, "value", _NO_HASH)]
    return not any(rows[name].unique().str.contains(pattern).any() for rows, name, pattern in asked)


def careful(lines: Lines) -> Sifted:
    """Read lines of one input one by one: cells with `raw`, and each line that is no object as DFTracer writes it."""
    rows: list[list[Any]] = []
    refused: list[Refused] = []
    for number, raw in zip(lines.numbers.tolist(), lines.content.split(b"\n")[:-1], strict=True):
        if raw.strip() in (b"", b"[", b"]"):
            continue
        text = decoded(raw)
        if text is None or len(raw) > in_force().max_line_bytes:
            refused.append(no_text(number, raw.decode("utf-8", "backslashreplace")))
            continue
        try:
            rows.append([*cells_of(text), number, text])
        except (ValueError, RecursionError) as error:
            refused.append((number, f"The line is no event: {_said(error)}.", _REMEDY, text))
    cells = pl.DataFrame(rows, schema=CELLS | {RAW: pl.String}, orient="row")
    return Sifted(cells.with_columns(pl.lit(int(lines.inputs[0]), pl.Int32).alias(INPUT)), frame_of(refused))


def decoded(raw: bytes) -> str | None:
    """Return a line as text; None where it is none."""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        return None
    return None if "\x00" in text else text.strip()


def _said(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    return f"it is no JSON, {error}" if isinstance(error, json.JSONDecodeError) else str(error)


def cells_of(text: str) -> list[str | None]:
    """Return the cells of a line; raises ValueError or RecursionError."""
    found = json.loads(text.removesuffix(","), object_pairs_hook=single, parse_constant=no_constant)
    if not isinstance(found, dict):
        raise ValueError("it is no object")
    # Members that are no cells are read from the line later.
    if "\\u" in text and not _is_storable(json.dumps(found, ensure_ascii=False)):
        raise ValueError("it holds half characters")
    args = found.get("args")
    if not (args is None or isinstance(args, dict)):
        raise ValueError("`args` is no object")
    for name in _MUST_BE_TEXT:
        if not isinstance(found.get(name), str):
            raise ValueError(f"`{name}` is no text")
    _require_named(args or {}, is_naming=found["name"] in NAMING)
    return [_cell(found.get(name)) for name in OF_LINE] + [_cell((args or {}).get(name)) for name in OF_ARGS.values()]


def _require_named(args: dict[str, Any], *, is_naming: bool) -> None:
    """Raise ValueError where a name is no text, or a hash neither that nor a whole number."""
    for name in (*_NAMES, *(("name",) if is_naming else ())):
        if not isinstance(args.get(name), str | None):
            raise ValueError(f"`{name}` is no text")
    for name in (*_HASHES, *(("value",) if is_naming else ())):
        if isinstance(args.get(name), bool) or not isinstance(args.get(name), str | int | None):
            raise ValueError(f"`{name}` is no hash")


def single(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object; raises ValueError where a name comes twice."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name comes twice in it")
    return found


def no_constant(name: str) -> None:
    """Raise ValueError: what JavaScript calls a number is none in JSON."""
    raise ValueError(f"{name} is no number")


def _cell(value: object) -> str | None:
    if value is None:
        return None
    text = value if isinstance(value, str) else json.dumps(value)
    if "\x00" in text or (not text.isascii() and not _is_storable(text)):
        raise ValueError("it holds half characters, or NUL")
    return text


def _is_storable(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
