"""When in its run a job does its I/O: the simple job classifier of PEARC'18.

White et al., "Automatic Characterization of HPC Job Parallel Filesystem I/O Patterns", PEARC'18,
DOI 10.1145/3219104.3219121, section 4.1 and Algorithm 1. Reads and writes are classified apart: a
subject here is one job or series in one direction.

Traffic comes as ragged arrays, all subjects at once: `offsets` (n + 1) cuts the flat arrays, subject i
has the points offsets[i] to offsets[i + 1], as in an Arrow list column. Either as intervals of any
length (`interval_sections`) or as regular grids (`grid_sections`, the faster way); both give the
`Sections` that `classify` labels.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import polars as pl

from iosig.transforms.arrays import Ints, Reals

Texts = npt.NDArray[np.str_]

#: Algorithm 1 is defined on four sections (section 4.1)
SECTION_COUNT = 4
#: points that are worked on at a time: bounds the memory, fits the cache
_CHUNK_POINTS = 1 << 17


@dataclass(frozen=True, slots=True)
class ClassParams:
    """The classifier's thresholds.

    no_usage_bytes: a mean volume per node below it is NO_USAGE, in bytes (section 4.1: 1 MB).
    uniform_cov: a coefficient of variation below it is UNIFORM (section 4.1: 0.25).
    predominance: how many times more bytes the edges or the middle must hold in the tests for CANYON and
        HILL (Algorithm 1: 2).
    min_duration_s: shorter runs are not classified, in seconds (section 6: ten minutes).
    max_missing_ratio: the share of any section that may lack data (ours: the paper has no rule; a section
        that is missing for the most part would pass for one without I/O).
    """

    no_usage_bytes: float = 1e6
    uniform_cov: float = 0.25
    predominance: float = 2.0
    min_duration_s: float = 600.0
    max_missing_ratio: float = 0.5


@dataclass(frozen=True, slots=True)
class Sections:
    """Runs of n subjects, each cut into sections of equal time.

    volume_bytes (n, sections): bytes moved in each section. covered_s (n, sections): seconds of it for
    which there is data. duration_s (n): the whole run; NaN where its start or end is not known.
    """

    volume_bytes: Reals
    covered_s: Reals
    duration_s: Reals

    @property
    def missing_ratios(self) -> Reals:
        """The share of each run without data (n); NaN where the run has no duration."""
        return _missing(self.covered_s.sum(axis=1), self.duration_s)

    @property
    def section_missing_ratios(self) -> Reals:
        """The share of each section without data (n, sections); NaN where the run has no duration."""
        return _missing(self.covered_s, self.duration_s[:, None] / self.covered_s.shape[1])


def _missing(covered_s: Reals, duration_s: Reals) -> Reals:
    with np.errstate(invalid="ignore", divide="ignore"):
        ratios = np.where(duration_s > 0, 1.0 - covered_s / duration_s, np.nan)
    # a step that should end at an edge may miss it by a rounding error
    return np.clip(np.where(np.abs(ratios) < 1e-9, 0.0, ratios), 0.0, 1.0)


# ---- intervals of any length


def interval_sections(
    left_s: Reals,
    right_s: Reals,
    volume_bytes: Reals,
    offsets: Ints,
    started_s: Reals,
    ended_s: Reals,
    section_count: int = SECTION_COUNT,
) -> Sections:
    """Share the bytes of intervals among sections of equal time of each subject's run.

    left_s, right_s, volume_bytes (points): an interval's edges in seconds and its bytes; a volume that is
    not finite is missing, an interval that is not longer than nothing holds nothing. offsets (n + 1).
    started_s, ended_s (n): the run, in the seconds of the edges.

    Bytes of an interval that crosses a section's or the run's edge are shared by time; what lies outside
    the run does not count. Intervals may come in any order; where they overlap both volumes count, and
    the time is covered once.
    """
    shape = (len(started_s), section_count)
    volume, covered = np.zeros(shape), np.zeros(shape)
    for group in _groups(offsets):
        points = slice(int(offsets[group.start]), int(offsets[group.stop]))
        counts = np.diff(offsets[group.start : group.stop + 1])
        placed = _Placed.of(
            left_s[points], right_s[points], volume_bytes[points], started_s[group], ended_s[group], counts
        )
        if placed.is_disjoint:
            volume[group], covered[group] = placed.sums(section_count, placed.volume, placed.length)
        else:
            apart = placed.apart()
            (volume[group],) = placed.sums(section_count, placed.volume)
            (covered[group],) = apart.sums(section_count, apart.length)
    duration = ended_s - started_s
    return Sections(volume, covered * np.where(duration > 0, duration, 0.0)[:, None], duration)


#: a run that is shorter than one alone by more was stopped (ours, as `iosig.transforms.attribution` has it)
_SHORT_RATIO = 0.08


def burst_sections(
    began_s: Reals, ceased_s: Reals, volume_bytes: Reals, offsets: Ints, alone_s: Reals, duration_s: Reals
) -> Sections:
    """Return the sections of runs that did what their applications' signatures do.

    began_s, ceased_s, volume_bytes (points): the bursts of each run's signature, in seconds since a run's start; bytes
    between them are left out. offsets (n + 1): where those of each run are. alone_s, duration_s (n): how long a run
    takes alone, and how long each took, seconds above 0.

    Bursts after the end of a stopped run (`pace`) are left out.
    """
    own = np.repeat(pace(alone_s, duration_s), np.diff(offsets))
    start_s = np.zeros_like(duration_s)
    return without_gaps(interval_sections(began_s * own, ceased_s * own, volume_bytes, offsets, start_s, duration_s))


def pace(alone_s: Reals, duration_s: Reals) -> Reals:
    """Return by which factor runs (n) are slower than their signatures: the ratio of their durations.

    A run that is shorter by more than a little was stopped at its usual pace: 1.
    """
    ratio: Reals = np.where(duration_s < (1.0 - _SHORT_RATIO) * alone_s, 1.0, duration_s / alone_s)
    return ratio


def without_gaps(sections: Sections) -> Sections:
    """Return sections of runs of which all is known: nothing but what is told moved."""
    each = sections.duration_s / sections.volume_bytes.shape[1]
    covered: Reals = np.broadcast_to(each[:, None], sections.volume_bytes.shape)
    return replace(sections, covered_s=covered)


def _groups(offsets: Ints) -> Iterator[slice]:
    """Yield slices of whole subjects, of about as many points as are worked on at a time."""
    marks = np.arange(int(offsets[0]), int(offsets[-1]), _CHUNK_POINTS)
    bounds = np.unique(np.concatenate([[0], np.searchsorted(offsets, marks[1:]), [len(offsets) - 1]]))
    for first, last in pairwise(bounds.tolist()):
        yield slice(first, last)


@dataclass(frozen=True, slots=True)
class _Placed:
    """Intervals placed in their owners' runs: 0 is the start of a run, 1 its end."""

    owner: Ints
    owner_count: int
    left: Reals
    right: Reals
    volume: Reals

    @classmethod
    def of(
        cls, left_s: Reals, right_s: Reals, volume_bytes: Reals, started_s: Reals, ended_s: Reals, counts: Ints
    ) -> _Placed:
        """Place intervals whose owners follow one another, `counts` of them each; unusable ones have no length."""
        owner = np.repeat(np.arange(len(counts)), counts)
        started, duration = np.repeat(started_s, counts), np.repeat(ended_s - started_s, counts)
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            left, right = (left_s - started) / duration, (right_s - started) / duration
            is_unusable = ~((duration > 0) & (right > left) & np.isfinite(volume_bytes))
        volume = volume_bytes
        if is_unusable.any():
            left[is_unusable] = right[is_unusable] = 0.0
            volume = np.where(is_unusable, 0.0, volume_bytes)
        return cls(owner, len(counts), left, right, volume)

    @property
    def length(self) -> Reals:
        """The share of its owner's run that each interval takes."""
        return self.right - self.left

    @property
    def is_disjoint(self) -> bool:
        """Whether no usable interval starts before the one of the same owner before it ends."""
        usable = np.flatnonzero(self.right > self.left)
        left, right, owner = self.left[usable], self.right[usable], self.owner[usable]
        return bool(((left[1:] >= right[:-1]) | (owner[1:] != owner[:-1])).all())

    def apart(self) -> _Placed:
        """Return the intervals in order, each without what those before it cover."""
        # one axis for all: owner i lies between 2i and 2i + 1, so that a running maximum never crosses owners
        base = 2.0 * self.owner
        left, right = np.clip(self.left, 0.0, 1.0), np.clip(self.right, 0.0, 1.0)
        order = np.argsort(base + left, kind="stable")
        base, left, right = base[order], left[order], right[order]
        reached = np.concatenate([[-np.inf], np.maximum.accumulate(base + right)[:-1]]) - base
        left = np.minimum(np.maximum(left, reached), right)
        return _Placed(self.owner[order], self.owner_count, left, right, self.volume[order])

    def sums(self, section_count: int, *weights: Reals) -> tuple[Reals, ...]:
        """Sum weights over (owners, sections), shared by time where an interval crosses an edge."""
        left, right = self.left * section_count, self.right * section_count
        section = np.floor(left)
        is_whole = (left >= 0) & (right <= section + 1) & (section < section_count)
        crossing = np.flatnonzero(~is_whole & (right > 0) & (left < section_count) & (right > left))
        cell = self.owner * section_count + np.clip(section, 0, section_count - 1).astype(np.int64)
        low, high, owner = left[crossing], right[crossing], self.owner[crossing]
        found: list[Reals] = []
        for weight in weights:
            whole = np.bincount(cell, np.where(is_whole, weight, 0.0), self.owner_count * section_count)
            total = whole.astype(np.float64, copy=False).reshape(self.owner_count, section_count)
            density = weight[crossing] / (high - low)
            for number in range(section_count):
                overlap = np.clip(np.minimum(high, number + 1) - np.maximum(low, number), 0.0, None)
                total[:, number] += np.bincount(owner, density * overlap, self.owner_count)
            found.append(total)
        return tuple(found)


# ---- regular grids


def grid_sections(
    bytes_per_s: Reals,
    offsets: Ints,
    grid_started_s: Reals,
    interval_s: Reals,
    started_s: Reals,
    ended_s: Reals,
    section_count: int = SECTION_COUNT,
) -> Sections:
    """Share the bytes of regular grids among sections of equal time of each subject's run.

    bytes_per_s (points): the rate in each step; what is not finite is missing. offsets (n + 1).
    grid_started_s, interval_s (n): the left edge of the first step and the steps' length, in seconds.
    started_s, ended_s (n): the run.

    Gives what `interval_sections` gives for the same steps, from one pass over the points: whole steps
    are summed between the sections' edges, only the steps at the edges are shared.
    """
    is_known = np.zeros(len(bytes_per_s) + 1, dtype=np.bool_)
    np.isfinite(bytes_per_s, out=is_known[:-1])
    values = np.zeros(len(bytes_per_s) + 1)
    np.copyto(values[:-1], bytes_per_s, where=is_known[:-1])
    duration = ended_s - started_s
    edges = started_s[:, None] + duration[:, None] * (np.arange(section_count + 1) / section_count)
    with np.errstate(invalid="ignore", divide="ignore"):
        positions = (edges - grid_started_s[:, None]) / interval_s[:, None]
    is_run = (duration > 0) & (interval_s > 0)
    positions = np.where(is_run[:, None], np.nan_to_num(positions), 0.0)
    positions = np.clip(positions, 0.0, np.diff(offsets)[:, None])
    volume = _step_sums(values, offsets, positions) * interval_s[:, None]
    # the one large array serves twice: NumPy would cast the mask to another one of its size
    values[:] = is_known
    covered = _step_sums(values, offsets, positions) * interval_s[:, None]
    return Sections(np.where(is_run[:, None], volume, 0.0), np.where(is_run[:, None], covered, 0.0), duration)


def _step_sums(values: Reals, offsets: Ints, positions: Reals) -> Reals:
    """Sum steps between neighbouring positions (n, k + 1) of each grid, parts of steps by their share.

    `values` (points + 1) ends with one that is never counted: an index may stand behind the last point.
    """
    low, high = positions[:, :-1], positions[:, 1:]
    first, last = np.ceil(low), np.floor(high)
    base = offsets[:-1, None]
    pairs = np.stack([base + first.astype(np.int64), base + last.astype(np.int64)], axis=-1)
    sums = np.add.reduceat(values, pairs.ravel())[::2].reshape(low.shape) if pairs.size else low
    total: Reals = np.where(last > first, sums, 0.0)
    head = np.minimum(first, high) - low
    tail = np.where(last >= first, high - last, 0.0)
    for share, step in ((head, np.floor(low)), (tail, last)):
        total += np.where(share > 0, share * values[base + step.astype(np.int64)], 0.0)
    return total


# ---- labels


def variations(section_bytes: Reals) -> Reals:
    """Return the coefficient of variation of each row (n): population standard deviation over mean.

    NaN where the mean is 0. The paper's 0.25 is met with the population form: of the four section volumes
    no larger population is estimated.
    """
    mean = section_bytes.mean(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        found: Reals = np.where(mean > 0, section_bytes.std(axis=1, ddof=0) / mean, np.nan)
    return found


def labels(section_bytes: Reals, node_count: Reals, params: ClassParams | None = None) -> Texts:
    """Return each subject's label (n), by section 4.1 and Algorithm 1.

    section_bytes (n, 4). node_count (n): nodes of the job; where it is NaN or below 1 the volume counts
    as one node's. All of Algorithm 1's inequalities are strict, as printed.
    """
    params = params or ClassParams()
    s0, s1, s2, s3 = section_bytes.T
    middle, factor = s1 + s2, params.predominance
    volume = section_bytes.sum(axis=1)
    nodes = np.where(node_count >= 1, node_count, 1.0)
    chosen = np.select(
        [
            (volume <= 0) | (volume / nodes < params.no_usage_bytes),
            variations(section_bytes) < params.uniform_cov,
            (s0 > s1 + s2 + s3) & (s3 > factor * middle),
            s0 > s1 + s2 + s3,
            (s3 > s0 + s1 + s2) & (s0 > factor * middle),
            s3 > s0 + s1 + s2,
            middle > factor * (s0 + s3),
            np.minimum(s0, s3) > factor * np.maximum(s1, s2),
        ],
        ["NO_USAGE", "UNIFORM", "CANYON", "START", "CANYON", "END", "HILL", "CANYON"],
        default="OTHER",
    )
    return chosen.astype(np.str_)


def classify(sections: Sections, node_count: Reals, params: ClassParams | None = None) -> pl.DataFrame:
    """Classify subjects from their four sections; one row per subject, in order.

    node_count (n): NaN where it is not known. Columns: `outcome`, `label` (NULL unless classified),
    `section_bytes`, `cov` (NULL where nothing was moved), `volume_bytes` (within the run), `missing_ratio`.
    The first outcome that holds is given: `no_data` (nothing covers any of the run; volumes are NULL),
    `too_short`, `too_many_gaps` (any section lacks more than the permitted share), `classified`.
    """
    params = params or ClassParams()
    has_data = sections.covered_s.sum(axis=1) > 0
    with np.errstate(invalid="ignore"):
        is_gappy = (sections.section_missing_ratios > params.max_missing_ratio).any(axis=1)
        is_short = sections.duration_s < params.min_duration_s
    outcome = np.select([~has_data, is_short, is_gappy], ["no_data", "too_short", "too_many_gaps"], "classified")
    volume = np.where(has_data, sections.volume_bytes.sum(axis=1), np.nan)
    cov = np.where(has_data, variations(sections.volume_bytes), np.nan)
    return pl.DataFrame(
        {
            "outcome": pl.Series(outcome.tolist(), dtype=pl.String),
            "label": pl.Series(labels(sections.volume_bytes, node_count, params).tolist(), dtype=pl.String),
            "section_bytes": pl.Series(sections.volume_bytes.tolist(), dtype=pl.List(pl.Float64)),
            "cov": _nullable(cov),
            "volume_bytes": _nullable(volume),
            "missing_ratio": _nullable(sections.missing_ratios),
        }
    ).with_columns(
        pl.when(pl.col("outcome") == "classified").then("label").alias("label"),
        pl.when(pl.col("outcome") != "no_data").then("section_bytes").alias("section_bytes"),
    )


def _nullable(values: Reals) -> pl.Series:
    return pl.Series(values, dtype=pl.Float64).fill_nan(None)
