"""Split arriving JSON Lines or MessagePack into TMIO's flushes.

The flushes depend only on the content, not on how the bytes arrive. A flush ends before a line (or array) with a mode
that it already has, and after the line with `io_time`, which TMIO writes last. Rates without a mode form a separate
flush. A flush also ends before the line with its thousandth refusal. Memory use is a small multiple of the size of the
largest line or array, which is limited.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from iosig.warehouse.errors import InputRefused
from iosig.warehouse.following.flushes import Moves
from iosig.warehouse.sources.tmio.parts import (
    ARRAYS,
    BOM,
    IO_TIME,
    UNSTATED,
    Arrays,
    Part,
    Refusal,
    Unit,
    parse_object,
    refuse_too_large,
    split_modes,
)
from iosig.warehouse.sources.tmio.requests import FAULTS, check_requests, count_transfers

#: maximum size of a line or array [B], about 10^6 requests
MAX_OBJECT_BYTES = 1 << 26
#: number of refusals at which a flush is returned
MAX_REFUSALS = 1000
#: maximum number of bad requests of a mode that are reported individually
_MAX_REPORTED = 20
_LAST_MODES = (IO_TIME, UNSTATED)
_BLANK = b" \t\r\n"

#: content types: JSON Lines; MessagePack; MessagePack that is unreadable from the current position on
FORMS = ("lines", "arrays", "broken")
_LINES, _ARRAYS, _BROKEN = FORMS

#: position that marks the end of a file that another file continues
_AT_END = -1

Refused = tuple[int, str]


@dataclass(frozen=True, slots=True, eq=False)
class StreamedFlush:
    """A flush, and the stream's position after it.

    end: offset of the flush's end in the file; line: number of lines (or arrays) up to its end. form: content type
    (`FORMS`), None if not yet known. seen: for a flush that was returned before its end, the number of requests per
    mode so far.
    """

    moves: Mapping[str, Moves]
    until_s: float
    refused: tuple[Refused, ...]
    end: int
    line: int
    form: str | None = None
    seen: Mapping[str, int] = field(default_factory=dict)


class _Units(Protocol):
    """Splits the bytes of a file into lines or arrays."""

    is_broken: bool

    def feed(self, content: bytes) -> Iterator[Unit]:
        """Yield the units that these bytes complete."""
        ...

    def rest(self) -> Unit | None:
        """Return the remaining last bytes as a unit or a refusal, if no bytes follow; None if no bytes remain."""
        ...


class TmioStream:
    """Collects the flushes of a growing file.

    The stream starts at the file's start or, if given the fields of a StreamedFlush, after that flush. Raises
    InputRefused if the content is one JSON document of several lines, which has no flushes.
    """

    def __init__(
        self,
        *,
        offset: int = 0,
        line: int = 0,
        form: str | None = None,
        seen: Mapping[str, int] | None = None,
        max_object_bytes: int = MAX_OBJECT_BYTES,
    ) -> None:
        #: offset after the last complete line or array
        self.end = offset
        self._line = line
        self._seen = dict(seen or {})
        self._returned = dict(self._seen)
        self._form = form
        self._max_object_bytes = max_object_bytes
        self._units: _Units | None = None
        self._parts: list[Part] = []
        self._refused: list[Refused] = []
        self._has_units = False

    def feed(self, content: bytes) -> list[StreamedFlush]:
        """Return the flushes that these bytes complete."""
        if self._form == _BROKEN or not content:
            return []
        if self._units is None:
            self._form = self._form or (_ARRAYS if content[:1] in ARRAYS else _LINES)
            kind: type[Arrays] | type[_Lines] = Arrays if self._form == _ARRAYS else _Lines
            self._units = kind(self.end, self._line, self._max_object_bytes)
        return [flush for unit in self._units.feed(content) for flush in self._process(unit)]

    def pending(self) -> StreamedFlush | None:
        """Return the incomplete flush, or None.

        Later data of the same flush become a separate flush; no bytes count twice.
        """
        return self._flush() if self._has_units else None

    def end_file(self) -> tuple[list[StreamedFlush], list[StreamedFlush]]:
        """Treat the last bytes as complete, or refuse them, because another file continues this one from its own start.

        Returns the flushes that end before the last bytes, and those that end with the file, at the start of the next
        one. A line or array never continues in another file, because a writer keeps writing to the file that it has
        opened.
        """
        last_unit = self._units.rest() if self._units is not None else None
        flushes = [] if last_unit is None else list(self._process(Unit(last_unit.found, _AT_END, 0)))
        self._units = self._form = None
        self.end = self._line = 0
        last = [replace(flush, end=0, form=None) for flush in flushes if flush.end == _AT_END]
        return [flush for flush in flushes if flush.end != _AT_END], last

    def state(self) -> StreamedFlush:
        """Return an empty flush with the current position."""
        return StreamedFlush({}, math.nan, (), self.end, self._line, self._form, dict(self._seen))

    def finish(self) -> list[StreamedFlush]:
        """Return the remaining flushes at the end of the run; a last line without a line end counts if it is complete.

        If the run continues after all, so can the stream; a line that was refused as truncated is then parsed again.
        """
        last_unit = self._units.rest() if self._units is not None else None
        flushes: list[StreamedFlush] = []
        if last_unit is not None:
            flushes += self._process(last_unit)
        last = self.pending()
        return flushes if last is None else [*flushes, last]

    def _process(self, unit: Unit) -> Iterator[StreamedFlush]:
        modes = {part.mode for part in unit.found if isinstance(part, Part)}
        if modes & self._seen.keys():
            if self._has_units:
                yield self._flush(is_over=True)
            self._seen, self._returned = {}, {}
        self.end, self._line, self._has_units = unit.end, unit.line, True
        for part in unit.found:
            if isinstance(part, Part):
                self._seen[part.mode] = part.start_s.size
                self._parts.append(part)
            else:
                self._refused.append((part.line, part.reason))
        if self._units is not None and self._units.is_broken:
            self._form = _BROKEN
        if any(mode in modes for mode in _LAST_MODES):
            yield self._flush(is_over=True)
        elif self._form == _BROKEN or len(self._refused) >= MAX_REFUSALS:
            yield self._flush()

    def _flush(self, *, is_over: bool = False) -> StreamedFlush:
        """Return the collected flush; if it is over, start the next one."""
        moves, refused = _moves(self._select_parts())
        request_counts = {} if is_over else dict(self._seen)
        refused = (*self._refused, *refused)
        self._parts, self._refused, self._has_units = [], [], False
        self._seen, self._returned = dict(request_counts), dict(request_counts)
        until_s = max((float(part.end_s.max()) for part in moves.values()), default=math.nan)
        return StreamedFlush(moves, until_s, refused, self.end, self._line, self._form, request_counts)

    def _select_parts(self) -> Iterator[Part]:
        """Yield the parts, without second records of the same requests."""
        for part in self._parts:
            if part.mode.endswith("_async_b"):
                is_record = count_transfers(part.mode, self._seen) > 0
            else:
                # If the flush was returned before its end, `_b` may have counted already.
                waits = f"{part.mode.removesuffix('_t')}_b"
                is_record = self._returned.get(waits, 0) > 0 and not count_transfers(waits, self._returned)
            if part.start_s.size and not is_record:
                yield part


def _moves(parts: Iterable[Part]) -> tuple[dict[str, Moves], tuple[Refused, ...]]:
    """Collect the valid requests by direction, and describe the invalid ones."""
    moves: dict[str, list[Moves]] = {}
    refused: list[Refused] = []
    for part in parts:
        fault, request_bytes = check_requests(part)
        direction = UNSTATED if part.mode == UNSTATED else part.mode.split("_")[0]
        if fault.max() < 0:
            moves.setdefault(direction, []).append(Moves(part.start_s, part.end_s, request_bytes))
            continue
        refused += _bad_requests(part, fault)
        good = fault < 0
        if good.any():
            moves.setdefault(direction, []).append(Moves(part.start_s[good], part.end_s[good], request_bytes[good]))
    return {direction: _concat(pieces) for direction, pieces in moves.items()}, tuple(refused)


def _bad_requests(part: Part, fault: NDArray[np.int64]) -> Iterator[Refused]:
    places = np.flatnonzero(fault >= 0)
    for place in places[:_MAX_REPORTED]:
        yield part.line, f"{part.mode}: request {place + 1}: {FAULTS[fault[place]]}."
    if places.size > _MAX_REPORTED:
        yield part.line, f"{part.mode}: {places.size - _MAX_REPORTED} more requests are invalid."


def _concat(pieces: Sequence[Moves]) -> Moves:
    if len(pieces) == 1:
        return pieces[0]
    return Moves(
        np.concatenate([piece.start_s for piece in pieces]),
        np.concatenate([piece.end_s for piece in pieces]),
        np.concatenate([piece.volume_bytes for piece in pieces]),
    )


# ---- JSON Lines


class _Lines:
    """Splits bytes into lines of JSON Lines."""

    is_broken = False

    def __init__(self, offset: int, line: int, max_object_bytes: int) -> None:
        self._max_object_bytes = max_object_bytes
        #: offset after all received bytes, and number of complete lines
        self._offset, self._line = offset, line
        self._partial = bytearray()
        #: number of dropped bytes at the start of a line that is too long
        self._skipped = 0
        self._is_first = offset == 0
        #: the first line, if it is not complete JSON but may start a document of several lines
        self._ambiguous: tuple[bytes, Refusal] | None = None

    def feed(self, content: bytes) -> Iterator[Unit]:
        """Yield the lines that these bytes complete."""
        place = 0
        while (stop := content.find(b"\n", place)) >= 0:
            self._offset += stop + 1 - place
            yield from self._end_line(content[place:stop])
            place = stop + 1
        remainder = content[place:]
        self._offset += len(remainder)
        if self._skipped or len(self._partial) + len(remainder) > self._max_object_bytes:
            self._skipped += len(self._partial) + len(remainder)
            self._partial = bytearray()
        else:
            self._partial += remainder

    def rest(self) -> Unit | None:
        """Return the last line, which has no line end; it is consumed if it is complete JSON."""
        was_first, line = self._is_first, self._line + 1
        content = bytes(self._partial).removeprefix(BOM).strip()
        if self._skipped:
            parts = self._resolve_ambiguous(refuse_too_large(line, self._max_object_bytes))
        else:
            parts = self._read(content, line, is_last=True) if content else self._resolve_ambiguous()
        if any(isinstance(part, Part) for part in parts):
            self._partial = bytearray()
            return Unit(parts, self._offset, self._line)
        # The line may still become the first one when its line end arrives.
        self._is_first = was_first
        return Unit(parts, self._offset - len(self._partial) - self._skipped, self._line) if parts else None

    def _end_line(self, last: bytes) -> Iterator[Unit]:
        """Yield the unit of a line that is complete with these bytes, unless it is blank."""
        self._line += 1
        content: bytes | bytearray = self._partial + last if self._partial else last
        skipped = self._skipped
        self._partial, self._skipped = bytearray(), 0
        if skipped or len(content) > self._max_object_bytes:
            parts = self._resolve_ambiguous(refuse_too_large(self._line, self._max_object_bytes))
        elif content := content.removeprefix(BOM).strip():
            parts = self._read(bytes(content), self._line)
        else:
            return
        if parts:
            yield Unit(parts, self._offset, self._line)

    def _resolve_ambiguous(self, *parts: Part | Refusal) -> list[Part | Refusal]:
        ambiguous, self._ambiguous, self._is_first = self._ambiguous, None, False
        return [*([ambiguous[1]] if ambiguous else []), *parts]

    def _read(self, content: bytes, line: int, *, is_last: bool = False) -> list[Part | Refusal]:
        """Parse a line, and resolve an ambiguous first line; empty if the line itself is ambiguous."""
        document = parse_object(content, line)
        if isinstance(document, dict):
            return self._resolve_ambiguous(*split_modes(document, line))
        if self._ambiguous is not None and _is_json_prefix(self._ambiguous[0] + b"\n" + content):
            raise InputRefused(
                "This is one JSON document of many lines, which has no flushes to follow.",
                "Analyze the whole file with `iosig period`, or have the program write JSON Lines.",
            )
        if self._is_first and not is_last and _is_json_prefix(content):
            self._ambiguous, self._is_first = (content, document), False
            return []
        return self._resolve_ambiguous(document)


def _is_json_prefix(content: bytes) -> bool:
    """Test whether bytes are valid JSON, or the start of valid JSON."""
    text = content.decode("utf-8", "replace")
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return error.pos >= len(text)
    except (RecursionError, ValueError):
        return False
    return True
