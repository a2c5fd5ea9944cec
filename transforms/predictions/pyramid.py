"""Throughput pyramids: a subject's throughput while it grows, fine for what is recent and coarse for what is old.

Online prediction (Tarraf et al., "Capturing Periodic I/O Using Frequency Techniques", IPDPS'24, section II-D) asks for
the samples of another window after every flush. The tool reads the whole trace each time; here each request is looked
at once. Level l has cells of `finest_s * 4**l` seconds, and keeps the last `cell_count` of them in a ring: memory and
the work of a flush grow with the logarithm of the run's length.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from iosig.transforms.arrays import Reals
from iosig.transforms.throughput.even_values import Grid, Instants, at_instants, binned
from iosig.transforms.throughput.exact_sums import limbs
from iosig.transforms.throughput.requests import Requests, Steps, step_function

KINDS = ("volumes", "instants")

#: rings of cells that requests are first put into: one binning for all levels costs less than one for each
_POURED_RINGS = 16
#: cells of a level are merged by fours
_FACTOR_BITS = 2
#: times so many cells from 0 and later are refused: floats tell instants near such edges apart no more (`Grid`)
_MOST_CELLS = 1 << 49
#: a request of more bytes is no request: sums of any number of them stay finite
_MOST_BYTES = 2.0**100
#: what `exact_sums.limbs` counts its limbs from
_UNIT_BITS = 992
_LIMB_BITS = 32
#: a cell that is measured for a smaller share of its time is not known; what rounding takes away is given back
_LEAST_MEASURED = 0.5 - 1e-9


@dataclass(frozen=True, slots=True)
class Window:
    """Evenly spaced samples: value i stands for 1 / sampling_hz seconds from started_s + i / sampling_hz on.

    bytes_per_s (n): NaN where it was not measured. started_s: a multiple of the samples' spacing.
    """

    bytes_per_s: Reals
    sampling_hz: float
    started_s: float

    @property
    def ended_s(self) -> float:
        """The right edge of the last sample."""
        return self.started_s + len(self.bytes_per_s) / self.sampling_hz


class Pyramid:
    """The throughput of one subject, kept while it grows, in bounded memory.

    Cell i of a level is from i * width (included) to (i + 1) * width (excluded) of the subject's own clock. The
    coarsest level always holds everything since `first_s`; coarser ones are made as the run grows. What comes late
    counts in every level that still reaches it.
    """

    def __init__(self, finest_s: float = 2.0**-10, cell_count: int = 4096, kind: str = KINDS[0]) -> None:
        """Make an empty pyramid.

        finest_s: the finest cells' length; 2**-10 s for traces (ours: below a millisecond is no phase of I/O), the poll
        interval for polls. Edges are exact where it is a power of two, else as good as a float. cell_count: cells of
        each level, a power of 4 (ours: 4096, so that a window for which a coarser level is read has over 1000 samples).
        kind: "volumes" is the mean rate in each cell, "instants" the rate at the left edge of each, from there on, as
        FTIO samples.
        """
        if kind not in KINDS:
            raise ValueError("a pyramid holds volumes or instants")
        if not 2.0**-40 <= finest_s <= 2.0**40:
            raise ValueError("the finest cells' length is not a number of seconds that makes sense")
        if not (16 <= cell_count <= 1 << 20 and cell_count & (cell_count - 1) == 0 and cell_count.bit_length() % 2):
            raise ValueError("cell_count is not a power of 4 from 16 to 2**20")
        self.finest_s, self.cell_count, self.kind = float(finest_s), int(cell_count), kind
        #: whether only what was told to be measured is known
        self.is_measured = False
        self._levels: list[_Level] = []
        #: when the first bytes began to move, or the first measured interval began; NaN where there is none
        self.first_s = math.nan
        #: when the last bytes had moved, the last measured interval ended, or what `advance` said; else NaN
        self.until_s = math.nan
        #: in units of 2**-992 bytes
        self._volume = 0
        #: requests whose times and size make sense, those of no bytes included
        self.request_count = 0
        #: requests that are left out: times that are missing or go backwards, sizes below 0 or without measure
        self.unusable_count = 0
        #: requests with times but no size (NaN); left out as well, and not among the unusable ones
        self.unknown_size_count = 0

    # ---- what is in it

    @property
    def volume_bytes(self) -> float:
        """All bytes ever added, each once; rounded once."""
        return self._volume / (1 << _UNIT_BITS)

    # ---- what comes

    def add(self, requests: Requests, measured_s: Reals | None = None) -> None:
        """Add requests of one subject, in any order; the work is for them and their cells, not for the history.

        measured_s (k, 2): of polls, the intervals that were measured, from left to right; those without a length are
        left out. Once there are any, cells of which less than half was measured are not known; without, all are until
        `until_s`. Time that is told of twice counts twice: leave out a poll that comes again. Nothing is added, and
        ValueError raised, where a time is too large to be told from its neighbours.
        """
        if requests.subject_count != 1:
            raise ValueError("a pyramid is of one subject")
        own = requests.chosen(requests.subject >= 0) if (requests.subject < 0).any() else requests
        durations, size = own.durations_s, own.volume_bytes
        is_unknown = (durations >= 0) & (durations < np.inf) & np.isnan(size)
        is_usable = own.is_usable & (size <= _MOST_BYTES)
        moving = own.chosen(is_usable & (size > 0))
        self._take([moving] if measured_s is None else [moving, _intervals(measured_s)])
        self._volume += _exact(moving.volume_bytes)
        usable, unknown = int(is_usable.sum()), int(is_unknown.sum())
        self.request_count += usable
        self.unknown_size_count += unknown
        self.unusable_count += len(size) - usable - unknown

    def advance(self, until_s: float) -> None:
        """Tell that all that moved until then was added; an earlier instant than `until_s` changes nothing."""
        self._extend(math.nan, float(until_s))

    # ---- what is asked

    def window(self, start_s: float, end_s: float, most_samples: int | None = None) -> Window:
        """Return the samples of a window at the finest level that holds it with at most so many (cell_count) of them.

        Edges move inwards to those of cells; an end behind `until_s` is that. A window that is shorter than a cell of
        the finest level that still holds it has no samples. Equal to `even_values.binned` (`at_instants` of the step
        function) of all requests ever added, on the same cells.
        """
        most = self.cell_count if most_samples is None else most_samples
        if most < 1 or not (math.isfinite(start_s) and math.isfinite(end_s)):
            raise ValueError("a window is from an instant to another, and has a sample at least")
        if math.isnan(self.until_s):
            return Window(np.zeros(0), 1.0 / self.finest_s, start_s)
        start, end = self._cell(start_s), self._cell(min(end_s, self.until_s))
        start += start * self.finest_s < start_s
        for number, level in self._all_levels():
            low, high = -(-start >> _shift(number)), end >> _shift(number)
            holds_all = math.isnan(self.first_s) or self._cell(self.first_s) >> _shift(number) >= level.lowest
            if (low >= level.lowest or holds_all) and high - low <= most:
                break
        return self._read(number, level, low, max(high, low))

    # ---- to disk and back

    def to_state(self) -> tuple[dict[str, Any], bytes]:
        """Return all that there is to know, in plain values that JSON can hold, and the cells, compressed."""
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
        return state, zlib.compress(b"".join(level.packed() for level in self._levels), 1)

    @classmethod
    def from_state(cls, state: Mapping[str, Any], blob: bytes) -> Self:
        """Return the pyramid of a state, which goes on to the last bit as the one would that it was taken from."""
        found = cls(state["finest_s"], state["cell_count"], state["kind"])
        found.is_measured, found._volume = state["is_measured"], int(state["volume"], 16)
        found.request_count, found.unusable_count = state["request_count"], state["unusable_count"]
        found.unknown_size_count = state["unknown_size_count"]
        if state["until_s"] is not None:
            found._extend(math.nan if state["first_s"] is None else state["first_s"], state["until_s"])
        raw, at = zlib.decompress(blob), 0
        for level in found._levels:
            at = level.unpack(raw, at)
        return found

    # ---- cells

    def _cell(self, time_s: float) -> int:
        """Return in which of the finest cells an instant lies."""
        width = self.finest_s
        if not abs(time_s) < _MOST_CELLS * width:
            raise ValueError("a time is too far from 0 for cells that short, or is none")
        cell = math.floor(time_s / width)
        # rounding may have put it beside the edges as they are
        return cell - (cell * width > time_s) + ((cell + 1) * width <= time_s)

    def _width_s(self, number: int) -> float:
        return math.ldexp(self.finest_s, _shift(number))

    def _all_levels(self) -> Iterator[tuple[int, _Level]]:
        """Yield the levels from the finest on, and then coarser ones that are made up for the moment, without end."""
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

    def _take(self, planes: list[Requests]) -> None:
        """Add usable requests that move bytes, and measured intervals as such, to their planes."""
        first = min((float(part.began_s.min()) for part in planes if len(part.began_s)), default=math.nan)
        until = max((float(part.ceased_s.max()) for part in planes if len(part.began_s)), default=math.nan)
        if math.isnan(first):
            return
        self._extend(first, until)
        if len(planes) > 1 and not self.is_measured:
            self.is_measured = True
            for level in self._levels:
                level.cells = np.concatenate([level.cells, np.zeros_like(level.cells)])
        for plane, part in enumerate(planes):
            if len(part.began_s):
                self._pour(plane, part)

    @property
    def _is_summed(self) -> tuple[bool, ...]:
        """Whether a cell of each plane is the sum of four finer ones, or the first of them."""
        return (self.kind == KINDS[0], True)

    def _extend(self, first_s: float, until_s: float) -> None:
        """Make room for what is from first to until; NaN: nothing is added."""
        first, until = _least(self.first_s, first_s), -_least(-self.until_s, -until_s)
        until_cell = self._cell(until)
        first_cell = until_cell if math.isnan(first) else self._cell(first)
        self.first_s, self.until_s = first, until
        if math.isnan(first):
            return
        if not self._levels:
            self._levels = [self._empty()]
        # The coarsest level has lost nothing yet, and one that is made of it begins with all there is.
        while len(self._levels) < _level_count(first_cell, until_cell, self.cell_count):
            self._levels.append(self._levels[-1].coarser(self._is_summed))
        for number, level in enumerate(self._levels):
            level.advance(until_cell >> _shift(number))

    def _pour(self, plane: int, requests: Requests) -> None:
        """Add usable requests to a plane: to cells of a fine level for all of them, and from there up and down."""
        is_summed = self._is_summed[plane]
        first, last = self._cell(float(requests.began_s.min())), self._cell(float(requests.ceased_s.max()))
        most = _POURED_RINGS * self.cell_count
        start = next(
            number for number in range(len(self._levels)) if (last >> _shift(number)) - (first >> _shift(number)) < most
        )
        source = requests if is_summed else step_function(requests)
        low = first >> _shift(start)
        values = self._values(source, start, low, last >> _shift(start))
        for level in self._levels[start:]:
            lost = max(level.lowest - low, 0)
            level.add(plane, low + lost, values[lost:])
            low, values = _merged(low, values, is_summed)
        for number in reversed(range(start)):
            level = self._levels[number]
            if last >> _shift(number) < level.lowest:
                break
            if isinstance(source, Requests):
                source = source.chosen(source.ceased_s >= level.lowest * self._width_s(number))
            level.add(plane, level.lowest, self._values(source, number, level.lowest, last >> _shift(number)))

    def _values(self, source: Requests | Steps, number: int, low: int, high: int) -> Reals:
        """Return what requests have in a level's cells from low to high, both included."""
        width, count = self._width_s(number), np.array([high - low + 1])
        started = np.array([low * width])
        if isinstance(source, Requests):
            return binned(source, Grid(started, np.array([width]), count)).volume_bytes
        return at_instants(source, Instants(started, np.array([1.0 / width]), count)).values

    def _read(self, number: int, level: _Level, low: int, high: int) -> Window:
        width = self._width_s(number)
        values = level.between(0, low, high)
        if self._is_summed[0]:
            values /= width
        if self.is_measured:
            values[level.between(1, low, high) < _LEAST_MEASURED * width] = np.nan
        return Window(values, 1.0 / width, low * width)


@dataclass(slots=True)
class _Level:
    """A ring of cells: cell i is at place i modulo their number. cells (planes, cell_count); newest: the last cell."""

    cells: Reals
    newest: int

    @property
    def lowest(self) -> int:
        """The first cell that is kept."""
        return self.newest - int(self.cells.shape[1]) + 1

    def advance(self, newest: int) -> None:
        for place in self._places(self.newest + 1, min(newest - self.newest, self.cells.shape[1])):
            self.cells[:, place] = 0.0
        self.newest = newest

    def add(self, plane: int, low: int, values: Reals) -> None:
        at = 0
        for place in self._places(low, len(values)):
            count = place.stop - place.start
            self.cells[plane, place] += values[at : at + count]
            at += count

    def between(self, plane: int, low: int, high: int) -> Reals:
        """Return cells from low to high (excluded); 0 where they are not kept."""
        found = np.zeros(high - low)
        first, at = max(low, self.lowest), max(low, self.lowest) - low
        for place in self._places(first, min(high, self.newest + 1) - first):
            found[at : at + place.stop - place.start] = self.cells[plane, place]
            at += place.stop - place.start
        return found

    def coarser(self, is_summed: tuple[bool, ...]) -> _Level:
        """Return the next level, of what this one holds."""
        found = _Level(np.zeros_like(self.cells), self.newest >> _FACTOR_BITS)
        for plane in range(len(self.cells)):
            values = self.between(plane, self.lowest, self.newest + 1)
            found.add(plane, *_merged(self.lowest, values, is_summed[plane]))
        return found

    def packed(self) -> bytes:
        """Return which cells are not 0, a bit for each, and these."""
        is_used = self.cells != 0
        values: Reals = self.cells[is_used].astype("<f8")
        return np.packbits(is_used).tobytes() + values.tobytes()

    def unpack(self, raw: bytes, at: int) -> int:
        """Take the cells from bytes, and return where they end."""
        bits = np.frombuffer(raw, np.uint8, self.cells.size // 8, at)
        is_used = np.unpackbits(bits).astype(np.bool_).reshape(self.cells.shape)
        values = np.frombuffer(raw, "<f8", int(is_used.sum()), at + bits.size)
        self.cells[is_used] = values
        return at + bits.size + values.nbytes

    def _places(self, low: int, count: int) -> Iterator[slice]:
        """Yield where cells from low on are: in up to two pieces."""
        size = int(self.cells.shape[1])
        start = low % size
        head = min(count, size - start)
        if head > 0:
            yield slice(start, start + head)
        if count > head > 0:
            yield slice(0, count - head)


def _shift(number: int) -> int:
    """Return by how many bits a level's cells are numbered lower than the finest ones."""
    return _FACTOR_BITS * number


def _level_count(first_cell: int, until_cell: int, cell_count: int) -> int:
    """Return how many levels there are when the coarsest one is to hold both cells."""
    number = 0
    while (until_cell >> _shift(number)) - (first_cell >> _shift(number)) >= cell_count:
        number += 1
    return number + 1


def _merged(low: int, values: Reals, is_summed: bool) -> tuple[int, Reals]:
    """Return the cells of the next coarser level, with the first one's number."""
    factor = 1 << _FACTOR_BITS
    ahead = low % factor
    whole = np.zeros(-(-(ahead + len(values)) // factor) * factor)
    whole[ahead : ahead + len(values)] = values
    fours = whole.reshape(-1, factor)
    return low >> _FACTOR_BITS, fours.sum(axis=1) if is_summed else fours[:, 0].copy()


def _intervals(measured_s: Reals) -> Requests:
    """Return intervals (k, 2) as requests that move a byte in each second."""
    edges = np.asarray(measured_s, dtype=np.float64)
    if edges.ndim != 2 or edges.shape[1] != 2:
        raise ValueError("measured intervals have a left and a right edge each")
    with np.errstate(invalid="ignore", over="ignore"):
        return Requests.of_one(edges[:, 0], edges[:, 1], edges[:, 1] - edges[:, 0]).usable()


def _least(first: float, second: float) -> float:
    """Return the lower one of two numbers; of a number and NaN the number."""
    return float(np.fmin(first, second))


def _exact(values: Reals) -> int:
    """Return the sum of values in units of 2**-992, without rounding."""
    return sum(int(multiples.sum()) << (_UNIT_BITS + _LIMB_BITS * place) for place, multiples in limbs(values))
