"""TMIO's flushes out of JSON Lines or MessagePack that arrive in pieces of any size.

What belongs to a flush depends on the content alone, never on how its bytes arrived: a flush is over before the line
(or array) with a mode that it has already, and after the one with `io_time`, which TMIO writes last. Rates without a
mode are a flush of their own. So is what stands before the line that makes a flush's refusals a thousand.

Memory is a small multiple of the largest line or array, and these are bounded.
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
    parsed,
    parts_of,
    too_large,
)
from iosig.warehouse.sources.tmio.requests import FAULTS, judged, transfer_count

#: a line or array above this is refused: some 10^6 requests, or more ranks than there are
MOST_OBJECT_BYTES = 1 << 26
#: after so many refusals a flush is handed over
MOST_REFUSALS = 1000
#: the first bad requests of a mode are told one by one
_MOST_TOLD = 20
_LAST_MODES = (IO_TIME, UNSTATED)
_BLANK = b" \t\r\n"

#: JSON Lines; MessagePack; MessagePack of which nothing more can be read
FORMS = ("lines", "arrays", "broken")
_LINES, _ARRAYS, _BROKEN = FORMS

#: the end of a file that has another one after it
_AT_END = -1

Refused = tuple[int, str]


@dataclass(frozen=True, slots=True, eq=False)
class StreamedFlush:
    """A flush, and where the stream is after it.

    end: bytes of the file up to its end; line: the lines (or arrays) that end there. form: what the file is (`FORMS`),
    None where that is not known yet. seen: of a flush that was handed over before it was over, the requests of each
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
    """What cuts the bytes of a file into lines or arrays."""

    is_broken: bool

    def of(self, content: bytes) -> Iterator[Unit]:
        """Yield the units that these bytes complete."""
        ...

    def rest(self) -> Unit | None:
        """Return what the last bytes are if nothing follows them: a unit, or a refusal; None if there are none."""
        ...


class TmioStream:
    """The flushes of a file that grows.

    It begins at its start or, with what a StreamedFlush tells, after one: bytes are fed from there on. Raises
    InputRefused where the content is one JSON document over many lines: that has no flushes.
    """

    def __init__(
        self,
        *,
        offset: int = 0,
        line: int = 0,
        form: str | None = None,
        seen: Mapping[str, int] | None = None,
        most_object_bytes: int = MOST_OBJECT_BYTES,
    ) -> None:
        #: the place after the last line or array that was taken
        self.end = offset
        self._line = line
        self._seen = dict(seen or {})
        self._handed = dict(self._seen)
        self._form = form
        self._most_object_bytes = most_object_bytes
        self._units: _Units | None = None
        self._parts: list[Part] = []
        self._refused: list[Refused] = []
        self._has_units = False

    def feed(self, content: bytes) -> list[StreamedFlush]:
        """Return the flushes that are over with these bytes."""
        if self._form == _BROKEN or not content:
            return []
        if self._units is None:
            self._form = self._form or (_ARRAYS if content[:1] in ARRAYS else _LINES)
            kind: type[Arrays] | type[_Lines] = Arrays if self._form == _ARRAYS else _Lines
            self._units = kind(self.end, self._line, self._most_object_bytes)
        return [flush for unit in self._units.of(content) for flush in self._taken(unit)]

    def pending(self) -> StreamedFlush | None:
        """Hand over what waits of a flush that is not over; None if nothing does.

        What comes later of the same flush is a flush of its own, and no bytes of it count twice.
        """
        return self._flush() if self._has_units else None

    def end_file(self) -> tuple[list[StreamedFlush], list[StreamedFlush]]:
        """Take the last bytes for whole, or refuse them: another file goes on, from its start.

        Return the flushes that are over with them: those that end before them, and those that end with the file, which
        is at the start of the next one. A line or array never goes on in another file: whoever has opened a file
        writes into it, by whatever name it goes.
        """
        rest = self._units.rest() if self._units is not None else None
        flushes = [] if rest is None else list(self._taken(Unit(rest.found, _AT_END, 0)))
        self._units = self._form = None
        self.end = self._line = 0
        last = [replace(flush, end=0, form=None) for flush in flushes if flush.end == _AT_END]
        return [flush for flush in flushes if flush.end != _AT_END], last

    def state(self) -> StreamedFlush:
        """Return a flush of nothing: where the stream is when all was handed over."""
        return StreamedFlush({}, math.nan, (), self.end, self._line, self._form, dict(self._seen))

    def finish(self) -> list[StreamedFlush]:
        """Return what waits, where the run is over: a last line without its end counts if it is whole.

        If the run goes on all the same, so can the stream: a line that is refused as cut is looked at again.
        """
        rest = self._units.rest() if self._units is not None else None
        flushes: list[StreamedFlush] = []
        if rest is not None:
            flushes += self._taken(rest)
        last = self.pending()
        return flushes if last is None else [*flushes, last]

    def _taken(self, unit: Unit) -> Iterator[StreamedFlush]:
        modes = {part.mode for part in unit.found if isinstance(part, Part)}
        if modes & self._seen.keys():
            if self._has_units:
                yield self._flush(is_over=True)
            self._seen, self._handed = {}, {}
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
        elif self._form == _BROKEN or len(self._refused) >= MOST_REFUSALS:
            yield self._flush()

    def _flush(self, *, is_over: bool = False) -> StreamedFlush:
        """Hand over what waits; if the flush is over, the next one begins."""
        moves, refused = _moves(self._counted())
        seen = {} if is_over else dict(self._seen)
        refused = (*self._refused, *refused)
        self._parts, self._refused, self._has_units = [], [], False
        self._seen, self._handed = dict(seen), dict(seen)
        until_s = max((float(part.end_s.max()) for part in moves.values()), default=math.nan)
        return StreamedFlush(moves, until_s, refused, self.end, self._line, self._form, seen)

    def _counted(self) -> Iterator[Part]:
        """Yield the parts whose requests are no second record of the same ones."""
        for part in self._parts:
            if part.mode.endswith("_async_b"):
                is_record = transfer_count(part.mode, self._seen) > 0
            else:
                # Where the flush was handed over before it was over, `_b` may have counted already.
                waits = f"{part.mode.removesuffix('_t')}_b"
                is_record = self._handed.get(waits, 0) > 0 and not transfer_count(waits, self._handed)
            if part.start_s.size and not is_record:
                yield part


def _moves(parts: Iterable[Part]) -> tuple[dict[str, Moves], tuple[Refused, ...]]:
    """Return the good requests by direction, and what is said of the bad ones."""
    found: dict[str, list[Moves]] = {}
    refused: list[Refused] = []
    for part in parts:
        fault, moved = judged(part)
        direction = UNSTATED if part.mode == UNSTATED else part.mode.split("_")[0]
        if fault.max() < 0:
            found.setdefault(direction, []).append(Moves(part.start_s, part.end_s, moved))
            continue
        refused += _bad_requests(part, fault)
        good = fault < 0
        if good.any():
            found.setdefault(direction, []).append(Moves(part.start_s[good], part.end_s[good], moved[good]))
    return {direction: _joined(pieces) for direction, pieces in found.items()}, tuple(refused)


def _bad_requests(part: Part, fault: NDArray[np.int64]) -> Iterator[Refused]:
    places = np.flatnonzero(fault >= 0)
    for place in places[:_MOST_TOLD]:
        yield part.line, f"{part.mode}: of request {place + 1}, {FAULTS[fault[place]]}."
    if places.size > _MOST_TOLD:
        yield part.line, f"{part.mode}: {places.size - _MOST_TOLD} more requests are as bad."


def _joined(pieces: Sequence[Moves]) -> Moves:
    if len(pieces) == 1:
        return pieces[0]
    return Moves(
        np.concatenate([piece.start_s for piece in pieces]),
        np.concatenate([piece.end_s for piece in pieces]),
        np.concatenate([piece.volume_bytes for piece in pieces]),
    )


# ---- JSON Lines


class _Lines:
    """The lines of JSON Lines."""

    is_broken = False

    def __init__(self, offset: int, line: int, most_object_bytes: int) -> None:
        self._most_object_bytes = most_object_bytes
        #: the place after all bytes that came, and the lines that ended
        self._offset, self._line = offset, line
        self._begun = bytearray()
        #: bytes of a line that is too long; they are not kept
        self._skipped = 0
        self._is_first = offset == 0
        #: the first line, if it is no whole JSON but could begin a document of many lines
        self._doubtful: tuple[bytes, Refusal] | None = None

    def of(self, content: bytes) -> Iterator[Unit]:
        """Yield the lines that these bytes complete."""
        place = 0
        while (stop := content.find(b"\n", place)) >= 0:
            self._offset += stop + 1 - place
            yield from self._ended(content[place:stop])
            place = stop + 1
        rest = content[place:]
        self._offset += len(rest)
        if self._skipped or len(self._begun) + len(rest) > self._most_object_bytes:
            self._skipped += len(self._begun) + len(rest)
            self._begun = bytearray()
        else:
            self._begun += rest

    def rest(self) -> Unit | None:
        """Return the last line, which has no end: it counts, and its bytes are used up, if it is whole."""
        was_first, line = self._is_first, self._line + 1
        content = bytes(self._begun).removeprefix(BOM).strip()
        if self._skipped:
            found = self._with_doubtful(too_large(line, self._most_object_bytes))
        else:
            found = self._read(content, line, is_last=True) if content else self._with_doubtful()
        if any(isinstance(part, Part) for part in found):
            self._begun = bytearray()
            return Unit(found, self._offset, self._line)
        # It may yet be the first line, if its end comes all the same.
        self._is_first = was_first
        return Unit(found, self._offset - len(self._begun) - self._skipped, self._line) if found else None

    def _ended(self, last: bytes) -> Iterator[Unit]:
        """Yield what a line is whose last bytes came, if it is not blank."""
        self._line += 1
        content: bytes | bytearray = self._begun + last if self._begun else last
        skipped = self._skipped
        self._begun, self._skipped = bytearray(), 0
        if skipped or len(content) > self._most_object_bytes:
            found = self._with_doubtful(too_large(self._line, self._most_object_bytes))
        elif content := content.removeprefix(BOM).strip():
            found = self._read(bytes(content), self._line)
        else:
            return
        if found:
            yield Unit(found, self._offset, self._line)

    def _with_doubtful(self, *found: Part | Refusal) -> list[Part | Refusal]:
        doubtful, self._doubtful, self._is_first = self._doubtful, None, False
        return [*([doubtful[1]] if doubtful else []), *found]

    def _read(self, content: bytes, line: int, *, is_last: bool = False) -> list[Part | Refusal]:
        """Return what a line says, and the line before it that was in doubt; nothing if it is in doubt itself."""
        document = parsed(content, line)
        if isinstance(document, dict):
            return self._with_doubtful(*parts_of(document, line))
        if self._doubtful is not None and _is_cut(self._doubtful[0] + b"\n" + content):
            raise InputRefused(
                "This is one JSON document of many lines, which has no flushes to follow.",
                "Judge it whole with `iosig period`, or have the program write JSON Lines.",
            )
        if self._is_first and not is_last and _is_cut(content):
            self._doubtful, self._is_first = (content, document), False
            return []
        return self._with_doubtful(document)


def _is_cut(content: bytes) -> bool:
    """Return whether bytes are JSON, or the start of it: whole up to their end."""
    text = content.decode("utf-8", "replace")
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return error.pos >= len(text)
    except (RecursionError, ValueError):
        return False
    return True
