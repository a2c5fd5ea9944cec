"""Parse the flushes of a TMIO trace, mode by mode, from JSON, JSON Lines or MessagePack.

A flush is a block of records that TMIO writes at one time; a mode is a kind of requests, such as synchronous reads.
Objects are parsed one at a time, and their size is limited. An object is a whole JSON file, a line of JSON Lines or a
MessagePack array. Memory use is a small multiple of the largest object.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

import msgpack
import numpy as np
from numpy.typing import NDArray

from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.files.opening import open_decompressed, refusing_damage

Reals = NDArray[np.float64]
MODES = (
    "read_sync",
    "write_sync",
    *(f"{direction}_async{end}" for direction in ("read", "write") for end in ("", "_t", "_b")),
)
UNSTATED = "unstated"
IO_TIME = "io_time"
BOM = b"\xef\xbb\xbf"
#: maximum size of an object [B]; parsing it takes about six times this amount of memory
MAX_OBJECT_BYTES = 1 << 28
_READ_BYTES = 1 << 20
_RAW_CHARS = 200
#: first bytes of a MessagePack array
ARRAYS = {bytes([mark]) for mark in (*range(0x90, 0xA0), 0xDC, 0xDD)}
#: maximum number of refused lines that are reported before the first good one
_MAX_PENDING = 1000
#: members of JSON objects, in decreasing precision: phases of ranks, individual requests
_LEVELS = (("b_rank_avr", "t_rank_s", "t_rank_e"), ("b_ind", "t_ind_s", "t_ind_e"))
_STEPS = ("b_overlap_avr", "t_overlap")
_PLAIN_KEYS = (*(level[0] for level in _LEVELS), _STEPS[0])
#: members of a MessagePack array after type, is_async and is_write
_PACKED_NAMES = (
    "total_bytes",
    "max_bytes_per_rank",
    "max_bytes_per_phase",
    "max_io_phases_per_rank",
    "total_io_phases",
    "max_io_ops_in_phase",
    "max_io_ops_per_rank",
    "total_io_ops",
    "number_of_ranks",
    "total_number_of_ranks",
)
_PACKED_TIMES = (
    *("delta_t_agg", "delta_t_sr", "delta_t_sw", "delta_t_ara", "delta_t_arr", "delta_t_ar_lost", "delta_t_awa"),
    *("delta_t_awr", "delta_t_aw_lost", "delta_t_agg_io", "delta_t_rank0", "delta_t_rank0_app"),
    *("delta_t_rank0_overhead_post_runtime", "delta_t_rank0_overhead_peri_runtime", "delta_t_overhead"),
    *("delta_t_overhead_post_runtime", "delta_t_overhead_peri_runtime", "delta_t_overhead_dft"),
)
#: number of a phase's members in MessagePack: bytes, start, end of transfer, required end, four rates, operations
_PHASE_LENGTH = 9


def _none() -> Reals:
    return np.zeros(0)


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Content of one flush for one mode: the stated totals, and the requests (NaN for missing values).

    A request's bytes are `rate_bytes_per_s` times the duration, unless `moved_bytes` is set. `is_rounded`: whether the
    numbers were text, with three digits in totals and six decimals in times.
    """

    line: int
    mode: str
    stated: dict[str, float]
    start_s: Reals = field(default_factory=_none)
    end_s: Reals = field(default_factory=_none)
    rate_bytes_per_s: Reals = field(default_factory=_none)
    moved_bytes: Reals | None = None
    is_rounded: bool = True

    def fingerprint(self) -> int:
        """Hash the mode and the requests."""
        arrays = (self.start_s, self.end_s, self.rate_bytes_per_s, self.moved_bytes)
        return hash((self.mode, *(None if array is None else array.tobytes() for array in arrays)))


@dataclass(frozen=True, slots=True)
class Refusal:
    """A line or mode that is not landed, and the reason."""

    line: int
    reason: str
    raw: str | None = None


def read_parts(path: Path) -> Iterator[Part | Refusal]:
    """Yield the parts of a trace, flush by flush; an unreadable flush, or one that repeats another, is a Refusal."""
    lines: dict[int, int] = {}
    for part in _parts(path):
        if isinstance(part, Part) and part.start_s.size:
            first_line = lines.setdefault(part.fingerprint(), part.line)
            if first_line < part.line:
                yield Refusal(part.line, f"Its requests of {part.mode} repeat those of line {first_line}.")
                continue
        yield part


def _parts(path: Path) -> Iterator[Part | Refusal]:
    with refusing_damage(), open_decompressed(path) as file:
        start = file.read(1)
        if start in ARRAYS:
            yield from _read_packed(chain([start], iter(lambda: file.read(_READ_BYTES), b"")))
        else:
            for line, document in _documents(path):
                yield from [document] if isinstance(document, Refusal) else split_modes(document, line)


# ---- JSON


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"the key {next(name for name in names if names.count(name) > 1)[:60]!r} occurs twice")
    return members


_DECODER = json.JSONDecoder(object_pairs_hook=_unique)


def parse_object(content: bytes, line: int) -> dict[str, object] | Refusal:
    """Parse a JSON object from a line or a file, or return a refusal with the reason."""
    try:
        document = _DECODER.decode(content.decode(json.detect_encoding(content), "surrogatepass"))
    except ValueError as error:
        reason = f"The content is not complete JSON: {error}."
    except RecursionError:
        reason = "The JSON is nested too deeply."
    else:
        if isinstance(document, dict):
            return document
        reason = "The content is not a JSON object."
    return Refusal(line, reason, content[:_RAW_CHARS].decode("utf-8", "backslashreplace"))


def refuse_too_large(line: int, max_object_bytes: int) -> Refusal:
    """Build the refusal of an object above the size limit."""
    return Refusal(line, f"The object has more than {max_object_bytes >> 20} MiB.")


def _lines(path: Path) -> Iterator[tuple[int, bytes | Refusal]]:
    """Yield non-blank lines, numbered from 1; a Refusal for a line that is too long."""
    with open_decompressed(path) as file:
        number = 0
        while content := file.readline(MAX_OBJECT_BYTES + 1):
            number += 1
            if len(content) > MAX_OBJECT_BYTES:
                yield number, refuse_too_large(number, MAX_OBJECT_BYTES)
                while content and not content.endswith(b"\n"):
                    content = file.readline(_READ_BYTES)
            elif content := content.removeprefix(BOM).strip():
                yield number, content


def _read_document(path: Path) -> dict[str, object] | Refusal:
    with open_decompressed(path) as file:
        content = file.read(MAX_OBJECT_BYTES + 1)
    if len(content) > MAX_OBJECT_BYTES:
        return refuse_too_large(1, MAX_OBJECT_BYTES)
    return parse_object(content.removeprefix(BOM), 1)


def _documents(path: Path) -> Iterator[tuple[int, dict[str, object] | Refusal]]:
    """Yield the objects in JSON Lines, or the single object in a file that spans several lines."""
    reason: str | None = None
    waiting: list[tuple[int, dict[str, object] | Refusal]] = []
    is_first = True
    for number, content in _lines(path):
        document = content if isinstance(content, Refusal) else parse_object(content, number)
        is_first, was_first = False, is_first
        if was_first and isinstance(document, Refusal):
            whole = _read_document(path)
            if isinstance(whole, dict):
                yield 1, whole
                return
            reason = whole.reason
        if reason is None or isinstance(document, dict):
            yield from waiting
            waiting, reason = [], None
            yield number, document
        elif len(waiting) < _MAX_PENDING:
            waiting.append((number, document))
    if reason is not None:
        raise InputRefused(reason, "Export or fetch the trace again.")


def split_modes(document: Mapping[str, object], line: int) -> Iterator[Part | Refusal]:
    """Yield the parts of a JSON object, one per mode."""
    modes = {name: value for name, value in document.items() if name in (*MODES, IO_TIME)}
    if not modes and "bandwidth" in document:
        modes = {UNSTATED: document}
    elif not modes and any(name in document for name in _PLAIN_KEYS):
        modes = {UNSTATED: {**document, "bandwidth": document}}
    if not modes:
        yield Refusal(line, "The object has neither a TMIO mode nor rates.")
    for mode, content in modes.items():
        yield _part(content, mode, line)


def _part(content: object, mode: str, line: int) -> Part | Refusal:
    if not isinstance(content, dict):
        return Refusal(line, f"{mode} is not an object.", _raw(content))
    stated = {name: float(value) for name, value in content.items() if _is_finite(value)}
    bandwidth = content.get("bandwidth") or {}
    if not isinstance(bandwidth, dict):
        return Refusal(line, f"The bandwidth of {mode} is not an object.", _raw(bandwidth))
    for rates, starts, ends in _LEVELS:
        if bandwidth.get(rates):
            fault = _fault(bandwidth, (rates, starts, ends))
            if fault:
                return Refusal(line, f"{mode}: {fault}")
            lists = (bandwidth[starts], bandwidth[ends], bandwidth[rates])
            return Part(line, mode, stated, *_numbers(list(chain.from_iterable(lists))).reshape(3, -1))
    if bandwidth.get(_STEPS[0]):
        fault = _fault(bandwidth, _STEPS)
        return Refusal(line, f"{mode}: {fault}") if fault else _convert_steps(bandwidth, mode, stated, line)
    return Part(line, mode, stated)


def _convert_steps(bandwidth: Mapping[str, object], mode: str, stated: dict[str, float], line: int) -> Part:
    """Convert the steps of an application's rate to requests; each step lasts until the time of the next one."""
    rates, times = _numbers(bandwidth[_STEPS[0]]), _numbers(bandwidth[_STEPS[1]])
    is_moving = rates != 0
    return Part(line, mode, stated, times[is_moving], np.r_[times[1:], np.nan][is_moving], rates[is_moving])


def _raw(value: object) -> str:
    """Format a value for a refusal; for a list or object, which may be large or deep, only the type is given."""
    return str(value)[:_RAW_CHARS] if value is None or isinstance(value, str | int | float) else type(value).__name__


def _is_finite(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def _fault(bandwidth: Mapping[str, object], names: Sequence[str]) -> str | None:
    for name in names:
        if not isinstance(bandwidth.get(name), list):
            return f"the list `{name}` is missing."
    lengths = {name: len(bandwidth[name]) for name in names}  # type: ignore[arg-type]
    if len(set(lengths.values())) > 1:
        return (
            "the lists differ in length: " + ", ".join(f"{name} has {count}" for name, count in lengths.items()) + "."
        )
    return None


def _numbers(values: object) -> Reals:
    """Convert a list to floats; NaN for other values."""
    assert isinstance(values, list)
    numbers = np.empty(len(values))
    # `struct` takes a third of the time of numpy's conversion.
    with suppress(struct.error, OverflowError):
        struct.pack_into(f"{len(values)}d", numbers.data, 0, *values)
        # struct converts Booleans to 0 or 1.
        if not ((numbers == 0) | (numbers == 1)).any() or bool not in set(map(type, values)):
            return numbers
    return np.array([value if _is_finite(value) else math.nan for value in values], dtype=np.float64)


# ---- MessagePack


#: exceptions that malformed MessagePack raises
_UNPACKING_FAULTS = (msgpack.UnpackException, ValueError, TypeError, RecursionError)
#: maximum size of an unpacked piece [B]
_PIECE_BYTES = 1 << 19


@dataclass(frozen=True, slots=True, eq=False)
class Unit:
    """The parts in a line or an array, the position after the line or array, and its ordinal number."""

    found: Sequence[Part | Refusal]
    end: int
    line: int


class Arrays:
    """Splits MessagePack into arrays; the rest of the file after malformed content is unreadable."""

    def __init__(self, offset: int, line: int, max_object_bytes: int) -> None:
        self.is_broken = False
        self._max_object_bytes = max_object_bytes
        # limits, so that false sizes do not allocate memory
        self._unpacker = msgpack.Unpacker(
            max_buffer_size=max(max_object_bytes, 2 * _PIECE_BYTES),
            max_array_len=max(max_object_bytes, 2 * _PIECE_BYTES) // _PHASE_LENGTH,
            max_map_len=1 << 16,
            max_str_len=1 << 16,
            max_bin_len=1 << 16,
            max_ext_len=0,
            unicode_errors="backslashreplace",
        )
        self._start, self._fed_bytes = offset, 0
        self._end, self._line = offset, line

    def feed(self, content: bytes) -> Iterator[Unit]:
        """Yield the units of the arrays that these bytes complete."""
        place = 0
        while place < len(content) and not self.is_broken:
            # The size limit applies at the same byte, regardless of how the bytes are split.
            stop = place + min(_PIECE_BYTES, self._max_object_bytes + 1 - self._waiting_bytes)
            yield from self._feed_piece(content[place:stop])
            place = stop

    @property
    def _waiting_bytes(self) -> int:
        """Size of the incomplete array so far [B]."""
        return self._start + self._fed_bytes - self._end

    def _feed_piece(self, piece: bytes) -> Iterator[Unit]:
        try:
            self._unpacker.feed(piece)
            self._fed_bytes += len(piece)
            for item in self._unpacker:
                end = self._start + self._unpacker.tell()
                if end - self._end > self._max_object_bytes:
                    break
                self._end, self._line = end, self._line + 1
                yield Unit((parse_array(item, self._line),), end, self._line)
        except (*_UNPACKING_FAULTS, MemoryError) as error:
            # The start of the next array is unknown.
            detail = str(error) or type(error).__name__
            yield self._break(Refusal(self._line + 1, f"The content is not valid MessagePack: {detail}."))
            return
        if self._waiting_bytes > self._max_object_bytes:
            yield self._break(refuse_too_large(self._line + 1, self._max_object_bytes))

    def _break(self, refusal: Refusal) -> Unit:
        self.is_broken = True
        return Unit((refusal,), self._end, self._line)

    def rest(self) -> Unit | None:
        """Return a refusal for a truncated last array, if any."""
        if self.is_broken or not self._waiting_bytes:
            return None
        refusal = Refusal(self._line + 1, "The file is truncated within an array.")
        return Unit((refusal,), self._end, self._line)


def _read_packed(contents: Iterable[bytes]) -> Iterator[Part | Refusal]:
    arrays = Arrays(0, 0, MAX_OBJECT_BYTES)
    for content in contents:
        for unit in arrays.feed(content):
            yield from unit.found
        if arrays.is_broken:
            return
    if last_unit := arrays.rest():
        yield from last_unit.found


def parse_array(item: object, number: int) -> Part | Refusal:
    """Parse a MessagePack array, which contains one mode."""
    if not isinstance(item, list) or not item or not isinstance(item[0], str):
        return Refusal(number, "This is not an array that begins with a mode.", _raw(item))
    mode = item[0]
    if mode == IO_TIME:
        times = zip(_PACKED_TIMES, item[1:], strict=False)
        return Part(number, mode, {name: float(value) for name, value in times if _is_finite(value)})
    first, last = 3, 3 + len(_PACKED_NAMES)
    if mode not in MODES or len(item) <= last or not isinstance(item[last], list):
        return Refusal(number, f"The array of `{mode[:60]}` is not in TMIO's format.", _raw(item))
    totals = zip(_PACKED_NAMES, item[first:last], strict=True)
    stated = {name: float(value) for name, value in totals if _is_finite(value)}
    phases = item[last]
    if any(type(phase) is not list or len(phase) != _PHASE_LENGTH for phase in phases):
        return Refusal(number, f"{mode}: a phase is not an array of {_PHASE_LENGTH} numbers.")
    numbers = _numbers(list(chain.from_iterable(phases))).reshape(len(phases), _PHASE_LENGTH)
    return Part(
        number, mode, stated, numbers[:, 1], numbers[:, 2], numbers[:, 5], moved_bytes=numbers[:, 0], is_rounded=False
    )
