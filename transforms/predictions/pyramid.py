"""Store the throughput of a growing run at several resolutions: fine cells for recent times, coarse cells for old ones.

Online prediction (Tarraf et al., "Capturing Periodic I/O Using Frequency Techniques", IPDPS'24, section II-D) needs the
samples of a new window after every flush. The published tool reads the whole trace each time; here each request is
processed once. Level l has cells of `finest_s * 4**l` seconds and keeps the last `cell_count` of them in a ring buffer.
Memory and the cost of a flush grow with the logarithm of the run's length.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from iosig.transforms.arrays import Reals
from iosig.transforms.throughput.even_values import Grid, Instants, bin_requests, sample_at
from iosig.transforms.throughput.exact_sums import split_into_limbs
from iosig.transforms.throughput.requests import Requests, Steps, step_function

KINDS = ("volumes", "instants")

#: maximum number of cells, in rings, into which requests are binned once for all coarser levels
_MAX_BINNED_RINGS = 16
#: log2 of the number of cells merged into one of the next level
_FACTOR_BITS = 2
#: maximum cell number; beyond it, floats do not resolve the edges (`Grid`)
_MAX_CELLS = 1 << 49
#: maximum size of a request [bytes]; keeps all sums finite
_MAX_BYTES = 2.0**100
#: exponent and width of the limbs of `exact_sums.limbs` [bits]
_UNIT_BITS = 992
_LIMB_BITS = 32
#: minimum measured fraction of a known cell, with a tolerance for rounding
_MIN_MEASURED_RATIO = 0.5 - 1e-9


@dataclass(frozen=True, slots=True)
class Window:
    """Equidistant samples of the rate; value i covers 1 / sampling_hz seconds from start_s + i / sampling_hz on.

    bytes_per_s (n) is NaN where nothing was measured; start_s [s] is a multiple of the spacing.
    """

    bytes_per_s: Reals
    sampling_hz: float
    start_s: float

    @property
    def end_s(self) -> float:
        """Right edge of the last sample [s]."""
        return self.start_s + len(self.bytes_per_s) / self.sampling_hz

    def skip_idle_start(self) -> Window:
        """Return the window from its first sample with I/O; without I/O, the window itself."""
        first = int(np.argmax(self.bytes_per_s > 0)) if len(self.bytes_per_s) else 0
        return Window(self.bytes_per_s[first:], self.sampling_hz, self.start_s + first / self.sampling_hz)

    def skip_idle_end(self) -> Window:
        """Return the window until its last sample with I/O; without I/O, the window itself."""
        idle_count = int(np.argmax(self.bytes_per_s[::-1] > 0)) if len(self.bytes_per_s) else 0
        return Window(self.bytes_per_s[: len(self.bytes_per_s) - idle_count], self.sampling_hz, self.start_s)


class Pyramid:
    """Throughput of one subject, in bounded memory.

    Cell i of a level covers [i * width, (i + 1) * width) on the subject's clock. The coarsest level contains everything
    since `first_s`; coarser levels are added as the run grows. Late requests count in every level that still covers
    their time.
    """

    def __init__(self, finest_s: float = 2.0**-10, cell_count: int = 4096, kind: str = KINDS[0]) -> None:
        """Create an empty pyramid.

        Parameters
        ----------
        finest_s : float
            Length of the finest cells [s]: 2**-10 s for traces (no I/O phase is shorter than a millisecond), the poll
            interval for polls. Edges are exact for a power of two, otherwise to float precision.
        cell_count : int
            Cells per level, a power of 4; with 4096, a window read from a coarser level has over 1000 samples.
        kind : str
            "volumes" (mean rate of each cell) or "instants" (rate at its left edge, as FTIO samples).

        Raises
        ------
        ValueError
            If a parameter is out of range.

        """
        if kind not in KINDS:
            raise ValueError("the kind of a pyramid must be volumes or instants")
        if not 2.0**-40 <= finest_s <= 2.0**40:
            raise ValueError("the length of the finest cells must be between 2**-40 and 2**40 s")
        if not (16 <= cell_count <= 1 << 20 and cell_count & (cell_count - 1) == 0 and cell_count.bit_length() % 2):
            raise ValueError("cell_count must be a power of 4 from 16 to 2**20")
        self.finest_s, self.cell_count, self.kind = float(finest_s), int(cell_count), kind
        #: whether only explicitly measured intervals are known
        self.is_measured = False
        self._levels: list[_Level] = []
        #: start of the first request with bytes, or of the first measured interval [s]; NaN if none exists
        self.first_s = math.nan
        #: end of the last request or measured interval, or the time of `advance` [s]; NaN if none exists
        self.until_s = math.nan
        #: exact sum in units of 2**-992 bytes
        self._volume = 0
        #: number of valid requests, including those of 0 bytes
        self.request_count = 0
        #: number of invalid requests, which are ignored: missing or decreasing times, negative or excessive sizes
        self.unusable_count = 0
        #: number of requests with valid times but no size (NaN), which are ignored as well
        self.unknown_size_count = 0

    # ---- totals

    @property
    def volume_bytes(self) -> float:
        """Total bytes; an exact sum, rounded once."""
        return self._volume / (1 << _UNIT_BITS)

    # ---- updates

    def add(self, requests: Requests, measured_s: Reals | None = None) -> None:
        """Add requests of one subject, in any order; the cost does not depend on the history.

        Parameters
        ----------
        requests : Requests
            New requests.
        measured_s : Reals, shape (k, 2), optional
            Measured intervals [s], for polls; empty ones are ignored, and repeated ones count twice. Once an interval
            was given, cells with less than half of their time measured are unknown. Without intervals, all cells until
            `until_s` are known.

        Raises
        ------
        ValueError
            If there are several subjects, or a time is too large to be resolved; nothing is added then.

        """
        if requests.subject_count != 1:
            raise ValueError("a pyramid accepts requests of one subject only")
        own = requests.select(requests.subject >= 0) if (requests.subject < 0).any() else requests
        durations, size = own.durations_s, own.volume_bytes
        is_unknown = (durations >= 0) & (durations < np.inf) & np.isnan(size)
        is_usable = own.is_usable & (size <= _MAX_BYTES)
        moving = own.select(is_usable & (size > 0))
        self._add_planes([moving] if measured_s is None else [moving, _intervals(measured_s)])
        self._volume += _exact_sum(moving.volume_bytes)
        usable, unknown = int(is_usable.sum()), int(is_unknown.sum())
        self.request_count += usable
        self.unknown_size_count += unknown
        self.unusable_count += len(size) - usable - unknown

    def advance(self, until_s: float) -> None:
        """Declare everything until a time [s] complete; a time before `until_s` has no effect."""
        self._extend(math.nan, float(until_s))

    # ---- sampling

    def window(self, start_s: float, end_s: float, most_samples: int | None = None) -> Window:
        """Sample a window at the finest level that covers it with a limited number of samples.

        Parameters
        ----------
        start_s, end_s : float
            Limits of the window [s]; moved inwards to edges of cells, and to `until_s`.
        most_samples : int, optional
            Maximum number of samples; default: `cell_count`.

        Returns
        -------
        Window
            A window without samples if it is shorter than a cell.

        Notes
        -----
        The samples equal those of `even_values.bin_requests` (for instants: `sample_at`) for all requests and the same
        cells.

        """
        max_count = self.cell_count if most_samples is None else most_samples
        if max_count < 1 or not (math.isfinite(start_s) and math.isfinite(end_s)):
            raise ValueError("a window requires finite limits and at least one sample")
        if math.isnan(self.until_s):
            return Window(np.zeros(0), 1.0 / self.finest_s, start_s)
        start, end = self._cell(start_s), self._cell(min(end_s, self.until_s))
        start += start * self.finest_s < start_s
        for number, level in self._all_levels():
            low, high = -(-start >> _shift(number)), end >> _shift(number)
            holds_all = math.isnan(self.first_s) or self._cell(self.first_s) >> _shift(number) >= level.lowest
            if (low >= level.lowest or holds_all) and high - low <= max_count:
                break
        return self._read(number, level, low, max(high, low))

    # ---- serialization

    def to_state(self) -> tuple[dict[str, Any], bytes]:
        """Export the complete state: JSON values, and the compressed cells."""
        state = {
            "finest_s": self.finest_s,
            "cell_count": self.cell_count,
            "kind": self.kind,
            "is_measured": self.is_measured,
            "volume": hex(self._volume),
            "request_count": self.request_count,
            "unusable_count": self.unusable_count,
            "unknown_size_count": self.unknown_size_count,
            "first_s": None if math.isnan(self.first_s) else self.first_s,
            "until_s": None if math.isnan(self.until_s) else self.until_s,
        }
        return state, zlib.compress(b"".join(level.pack() for level in self._levels), 1)

    @classmethod
    def from_state(cls, state: Mapping[str, Any], blob: bytes) -> Self:
        """Restore a pyramid from `to_state`; its further results are bit-identical."""
        pyramid = cls(state["finest_s"], state["cell_count"], state["kind"])
        pyramid.is_measured, pyramid._volume = state["is_measured"], int(state["volume"], 16)
        pyramid.request_count, pyramid.unusable_count = state["request_count"], state["unusable_count"]
        pyramid.unknown_size_count = state["unknown_size_count"]
        if state["until_s"] is not None:
            pyramid._extend(math.nan if state["first_s"] is None else state["first_s"], state["until_s"])
        raw, at = zlib.decompress(blob), 0
        for level in pyramid._levels:
            at = level.unpack(raw, at)
        return pyramid

    # ---- cells

    def _cell(self, time_s: float) -> int:
        """Compute the number of the finest cell that contains a time."""
        width = self.finest_s
        if not abs(time_s) < _MAX_CELLS * width:
            raise ValueError("a time is not finite, or too far from 0 for cells of this length")
        cell = math.floor(time_s / width)
        # correct for rounding at the edges
        return cell - (cell * width > time_s) + ((cell + 1) * width <= time_s)

    def _width_s(self, number: int) -> float:
        return math.ldexp(self.finest_s, _shift(number))

    def _all_levels(self) -> Iterator[tuple[int, _Level]]:
        """Yield all levels, finest first, then an endless series of temporary coarser ones."""
        level = self._empty()
        for number, level in enumerate(self._levels):
            yield number, level
        number = len(self._levels)
        if not self._levels:
            yield 0, level
            number = 1
        while True:
            level = level.coarser(self._is_summed)
            yield number, level
            number += 1

    def _empty(self) -> _Level:
        planes = 2 if self.is_measured else 1
        return _Level(np.zeros((planes, self.cell_count)), self._cell(self.until_s))

    def _add_planes(self, planes: list[Requests]) -> None:
        """Add requests with bytes, and measured intervals, to their planes."""
        first = min((float(part.start_s.min()) for part in planes if len(part.start_s)), default=math.nan)
        until = max((float(part.end_s.max()) for part in planes if len(part.start_s)), default=math.nan)
        if math.isnan(first):
            return
        self._extend(first, until)
        if len(planes) > 1 and not self.is_measured:
            self.is_measured = True
            for level in self._levels:
                level.cells = np.concatenate([level.cells, np.zeros_like(level.cells)])
        for plane, part in enumerate(planes):
            if len(part.start_s):
                self._add_to_plane(plane, part)

    @property
    def _is_summed(self) -> tuple[bool, ...]:
        """Whether a cell of each plane is the sum of four finer cells; otherwise it is the first of the four."""
        return (self.kind == KINDS[0], True)

    def _extend(self, first_s: float, until_s: float) -> None:
        """Extend all levels to a range of times; a first time of NaN adds nothing."""
        first, until = _min_ignoring_nan(self.first_s, first_s), -_min_ignoring_nan(-self.until_s, -until_s)
        until_cell = self._cell(until)
        first_cell = until_cell if math.isnan(first) else self._cell(first)
        self.first_s, self.until_s = first, until
        if math.isnan(first):
            return
        if not self._levels:
            self._levels = [self._empty()]
        # the coarsest level is complete, and so is a coarser one that is derived from it
        while len(self._levels) < _level_count(first_cell, until_cell, self.cell_count):
            self._levels.append(self._levels[-1].coarser(self._is_summed))
        for number, level in enumerate(self._levels):
            level.advance(until_cell >> _shift(number))

    def _add_to_plane(self, plane: int, requests: Requests) -> None:
        """Add requests to a plane: bin them at a fine level, derive coarser levels, and bin finer levels separately."""
        is_summed = self._is_summed[plane]
        first, last = self._cell(float(requests.start_s.min())), self._cell(float(requests.end_s.max()))
        max_count = _MAX_BINNED_RINGS * self.cell_count
        start = next(
            number
            for number in range(len(self._levels))
            if (last >> _shift(number)) - (first >> _shift(number)) < max_count
        )
        source = requests if is_summed else step_function(requests)
        low = first >> _shift(start)
        values = self._values(source, start, low, last >> _shift(start))
        for level in self._levels[start:]:
            lost = max(level.lowest - low, 0)
            level.add(plane, low + lost, values[lost:])
            low, values = _coarsen(low, values, is_summed)
        for number in reversed(range(start)):
            level = self._levels[number]
            if last >> _shift(number) < level.lowest:
                break
            if isinstance(source, Requests):
                source = source.select(source.end_s >= level.lowest * self._width_s(number))
            level.add(plane, level.lowest, self._values(source, number, level.lowest, last >> _shift(number)))

    def _values(self, source: Requests | Steps, number: int, low: int, high: int) -> Reals:
        """Values of a level's cells from low to high, both included."""
        width, count = self._width_s(number), np.array([high - low + 1])
        started = np.array([low * width])
        if isinstance(source, Requests):
            return bin_requests(source, Grid(started, np.array([width]), count)).volume_bytes
        return sample_at(source, Instants(started, np.array([1.0 / width]), count)).values

    def _read(self, number: int, level: _Level, low: int, high: int) -> Window:
        width = self._width_s(number)
        values = level.between(0, low, high)
        if self._is_summed[0]:
            values /= width
        if self.is_measured:
            values[level.between(1, low, high) < _MIN_MEASURED_RATIO * width] = np.nan
        return Window(values, 1.0 / width, low * width)


@dataclass(slots=True)
class _Level:
    """Ring buffer of cells (planes, cell_count): cell i is at index i modulo cell_count; `newest` is the last one."""

    cells: Reals
    newest: int

    @property
    def lowest(self) -> int:
        """Oldest cell kept."""
        return self.newest - int(self.cells.shape[1]) + 1

    def advance(self, newest: int) -> None:
        for indices in self._slices(self.newest + 1, min(newest - self.newest, self.cells.shape[1])):
            self.cells[:, indices] = 0.0
        self.newest = newest

    def add(self, plane: int, low: int, values: Reals) -> None:
        at = 0
        for indices in self._slices(low, len(values)):
            count = indices.stop - indices.start
            self.cells[plane, indices] += values[at : at + count]
            at += count

    def between(self, plane: int, low: int, high: int) -> Reals:
        """Copy cells from low to high (excluded); 0 for cells that are not kept."""
        values = np.zeros(high - low)
        first, at = max(low, self.lowest), max(low, self.lowest) - low
        for indices in self._slices(first, min(high, self.newest + 1) - first):
            values[at : at + indices.stop - indices.start] = self.cells[plane, indices]
            at += indices.stop - indices.start
        return values

    def coarser(self, is_summed: tuple[bool, ...]) -> _Level:
        """Derive the next coarser level."""
        level = _Level(np.zeros_like(self.cells), self.newest >> _FACTOR_BITS)
        for plane in range(len(self.cells)):
            values = self.between(plane, self.lowest, self.newest + 1)
            level.add(plane, *_coarsen(self.lowest, values, is_summed[plane]))
        return level

    def pack(self) -> bytes:
        """Serialize the cells as a bit mask of nonzero cells, and their values."""
        is_used = self.cells != 0
        values: Reals = self.cells[is_used].astype("<f8")
        return np.packbits(is_used).tobytes() + values.tobytes()

    def unpack(self, raw: bytes, at: int) -> int:
        """Restore the cells from bytes at an offset; return the end offset."""
        bits = np.frombuffer(raw, np.uint8, self.cells.size // 8, at)
        is_used = np.unpackbits(bits).astype(np.bool_).reshape(self.cells.shape)
        values = np.frombuffer(raw, "<f8", int(is_used.sum()), at + bits.size)
        self.cells[is_used] = values
        return at + bits.size + values.nbytes

    def _slices(self, low: int, count: int) -> Iterator[slice]:
        """Yield the one or two index ranges of consecutive cells."""
        size = int(self.cells.shape[1])
        start = low % size
        head = min(count, size - start)
        if head > 0:
            yield slice(start, start + head)
        if count > head > 0:
            yield slice(0, count - head)


def _shift(number: int) -> int:
    """Compute the number of bits by which cell numbers of a level are shifted relative to the finest level."""
    return _FACTOR_BITS * number


def _level_count(first_cell: int, until_cell: int, cell_count: int) -> int:
    """Compute the number of levels such that the coarsest one covers both cells."""
    number = 0
    while (until_cell >> _shift(number)) - (first_cell >> _shift(number)) >= cell_count:
        number += 1
    return number + 1


def _coarsen(low: int, values: Reals, is_summed: bool) -> tuple[int, Reals]:
    """Merge cells to the next coarser level; return the number of the first one and their values."""
    factor = 1 << _FACTOR_BITS
    ahead = low % factor
    padded = np.zeros(-(-(ahead + len(values)) // factor) * factor)
    padded[ahead : ahead + len(values)] = values
    fours = padded.reshape(-1, factor)
    return low >> _FACTOR_BITS, fours.sum(axis=1) if is_summed else fours[:, 0].copy()


def _intervals(measured_s: Reals) -> Requests:
    """Represent intervals (k, 2) as requests of one byte per second."""
    edges = np.asarray(measured_s, dtype=np.float64)
    if edges.ndim != 2 or edges.shape[1] != 2:
        raise ValueError("measured intervals require a left and a right edge each")
    with np.errstate(invalid="ignore", over="ignore"):
        return Requests.from_arrays(edges[:, 0], edges[:, 1], edges[:, 1] - edges[:, 0]).select_usable()


def _min_ignoring_nan(first: float, second: float) -> float:
    """Minimum of two numbers, ignoring NaN."""
    return float(np.fmin(first, second))


def _exact_sum(values: Reals) -> int:
    """Exact sum of values in units of 2**-992."""
    return sum(int(multiples.sum()) << (_UNIT_BITS + _LIMB_BITS * limb) for limb, multiples in split_into_limbs(values))
