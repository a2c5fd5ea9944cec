"""Classify jobs by the time of I/O within a run (PEARC'18).

White et al., "Automatic Characterization of HPC Job Parallel Filesystem I/O Patterns", PEARC'18,
DOI 10.1145/3219104.3219121, section 4.1 and Algorithm 1. Reads and writes are classified separately: a subject is one
job or series in one direction.

Traffic of all subjects is given as ragged arrays, as in an Arrow list column: subject i has the points offsets[i] to
offsets[i + 1]. Input is either intervals of any length (`interval_sections`) or regular grids (`grid_sections`, which
is faster); both yield the `Sections` that `classify` labels.
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

#: number of sections of Algorithm 1 (section 4.1)
SECTION_COUNT = 4
#: points per batch; bounds memory use and fits into the CPU cache
_BATCH_POINTS = 1 << 17


@dataclass(frozen=True, slots=True)
class ClassParams:
    """Thresholds of the classifier, as published except for `max_missing_ratio` and `no_usage_operations`."""

    #: mean volume per node below which a subject is NO_USAGE [bytes] (section 4.1: 1 MB)
    no_usage_bytes: float = 1e6
    #: mean number of operations per node below which a subject is NO_USAGE, of operations. The paper has no such limit.
    #: Starting a program opens some hundred files
    no_usage_operations: float = 100.0
    #: coefficient of variation below which a subject is UNIFORM (section 4.1: 0.25)
    uniform_cv: float = 0.25
    #: factor by which the edges must exceed the middle (CANYON), or the middle the edges (HILL; Algorithm 1: 2)
    predominance: float = 2.0
    #: minimum duration of a classified run [s] (section 6: ten minutes)
    min_duration_s: float = 600.0
    #: maximum fraction of any section without data; the paper has no rule, but a missing section would look idle
    max_missing_ratio: float = 0.5

    def for_operations(self) -> ClassParams:
        """Return the thresholds for amounts that are operations instead of bytes."""
        return replace(self, no_usage_bytes=self.no_usage_operations)


@dataclass(frozen=True, slots=True)
class Sections:
    """Runs of n subjects, divided into sections of equal time.

    Attributes
    ----------
    volume_bytes : Reals, shape (n, sections)
        Bytes in each section.
    covered_s : Reals, shape (n, sections)
        Time with data in each section [s].
    duration_s : Reals, shape (n,)
        Length of the run [s]; NaN if its start or end is unknown.

    """

    volume_bytes: Reals
    covered_s: Reals
    duration_s: Reals

    @property
    def missing_ratios(self) -> Reals:
        """Fraction of each run without data (n); NaN without duration."""
        return _missing(self.covered_s.sum(axis=1), self.duration_s)

    @property
    def section_missing_ratios(self) -> Reals:
        """Fraction of each section without data (n, sections); NaN without duration."""
        return _missing(self.covered_s, self.duration_s[:, None] / self.covered_s.shape[1])


def _missing(covered_s: Reals, duration_s: Reals) -> Reals:
    with np.errstate(invalid="ignore", divide="ignore"):
        ratios = np.where(duration_s > 0, 1.0 - covered_s / duration_s, np.nan)
    # rounding may move the end of a step across an edge
    return np.clip(np.where(np.abs(ratios) < 1e-9, 0.0, ratios), 0.0, 1.0)


# ---- intervals of any length


def interval_sections(
    left_s: Reals,
    right_s: Reals,
    volume_bytes: Reals,
    offsets: Ints,
    start_s: Reals,
    end_s: Reals,
    section_count: int = SECTION_COUNT,
) -> Sections:
    """Distribute the bytes of intervals over the sections of each subject's run, which have equal duration.

    Parameters
    ----------
    left_s, right_s, volume_bytes : Reals, shape (points,)
        Edges [s] and bytes of each interval, in any order. A volume that is not finite is missing; empty intervals are
        ignored.
    offsets : Ints, shape (n + 1,)
        Points of each subject.
    start_s, end_s : Reals, shape (n,)
        Start and end of each run, on the clock of the edges [s].
    section_count : int
        Number of sections.

    Returns
    -------
    Sections
        Bytes of an interval across an edge are divided by time; bytes outside the run are dropped. Overlapping
        intervals count twice in bytes and once in covered time.

    """
    shape = (len(start_s), section_count)
    volume, covered_ratio = np.zeros(shape), np.zeros(shape)
    for batch in _batch_subjects(offsets):
        points = slice(int(offsets[batch.start]), int(offsets[batch.stop]))
        counts = np.diff(offsets[batch.start : batch.stop + 1])
        intervals = _NormalizedIntervals.create(
            left_s[points], right_s[points], volume_bytes[points], start_s[batch], end_s[batch], counts
        )
        if intervals.is_disjoint:
            volume[batch], covered_ratio[batch] = intervals.sums(section_count, intervals.volume, intervals.length)
        else:
            disjoint = intervals.remove_overlap()
            (volume[batch],) = intervals.sums(section_count, intervals.volume)
            (covered_ratio[batch],) = disjoint.sums(section_count, disjoint.length)
    duration = end_s - start_s
    return Sections(volume, covered_ratio * np.where(duration > 0, duration, 0.0)[:, None], duration)


#: fraction of its signature's length by which a stopped run is shorter (as in `iosig.transforms.attribution`)
_SHORT_RATIO = 0.08


def burst_sections(
    start_s: Reals, end_s: Reals, volume_bytes: Reals, offsets: Ints, alone_s: Reals, duration_s: Reals
) -> Sections:
    """Compute the sections of runs that follow the signatures of their applications.

    Parameters
    ----------
    start_s, end_s, volume_bytes : Reals, shape (points,)
        Bursts of each run's signature [s from the start of the run].
    offsets : Ints, shape (n + 1,)
        Bursts of each run.
    alone_s, duration_s : Reals, shape (n,)
        Length of the signature and of the run [s], above 0.

    Returns
    -------
    Sections
        Sections without the bursts after the end of a stopped run.

    """
    slowdown = np.repeat(compute_slowdowns(alone_s, duration_s), np.diff(offsets))
    left_s, right_s, zero_s = start_s * slowdown, end_s * slowdown, np.zeros_like(duration_s)
    return assume_complete(interval_sections(left_s, right_s, volume_bytes, offsets, zero_s, duration_s))


def compute_slowdowns(alone_s: Reals, duration_s: Reals) -> Reals:
    """Compute the slowdown of runs: the ratio of their length to that of their signatures.

    Parameters
    ----------
    alone_s, duration_s : Reals, shape (n,)
        Length of the signature and of the run [s].

    Returns
    -------
    Reals, shape (n,)
        Slowdowns; 1 for a run that is clearly shorter, i.e. was stopped.

    """
    ratio: Reals = np.where(duration_s < (1.0 - _SHORT_RATIO) * alone_s, 1.0, duration_s / alone_s)
    return ratio


def assume_complete(sections: Sections) -> Sections:
    """Mark all sections as fully covered, for runs without missing data."""
    section_s = sections.duration_s / sections.volume_bytes.shape[1]
    covered_s: Reals = np.broadcast_to(section_s[:, None], sections.volume_bytes.shape)
    return replace(sections, covered_s=covered_s)


def _batch_subjects(offsets: Ints) -> Iterator[slice]:
    """Yield slices of whole subjects with about `_BATCH_POINTS` points."""
    marks = np.arange(int(offsets[0]), int(offsets[-1]), _BATCH_POINTS)
    bounds = np.unique(np.concatenate([[0], np.searchsorted(offsets, marks[1:]), [len(offsets) - 1]]))
    for first, last in pairwise(bounds.tolist()):
        yield slice(first, last)


@dataclass(frozen=True, slots=True)
class _NormalizedIntervals:
    """Intervals on the normalized time of their owners: 0 is the start of a run, 1 its end."""

    owner: Ints
    owner_count: int
    left: Reals
    right: Reals
    volume: Reals

    @classmethod
    def create(
        cls, left_s: Reals, right_s: Reals, volume_bytes: Reals, start_s: Reals, end_s: Reals, counts: Ints
    ) -> _NormalizedIntervals:
        """Normalize `counts` consecutive intervals of each owner; invalid intervals get a length of 0."""
        owner = np.repeat(np.arange(len(counts)), counts)
        started, duration = np.repeat(start_s, counts), np.repeat(end_s - start_s, counts)
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
        """Length of each interval as a fraction of the run."""
        return self.right - self.left

    @property
    def is_disjoint(self) -> bool:
        """Whether valid intervals are sorted and disjoint within each owner."""
        usable = np.flatnonzero(self.right > self.left)
        left, right, owner = self.left[usable], self.right[usable], self.owner[usable]
        return bool(((left[1:] >= right[:-1]) | (owner[1:] != owner[:-1])).all())

    def remove_overlap(self) -> _NormalizedIntervals:
        """Sort the intervals, and remove from each the time that earlier intervals cover."""
        # owner i occupies 2i to 2i + 1 on a common axis, so a running maximum does not cross owners
        base = 2.0 * self.owner
        left, right = np.clip(self.left, 0.0, 1.0), np.clip(self.right, 0.0, 1.0)
        order = np.argsort(base + left, kind="stable")
        base, left, right = base[order], left[order], right[order]
        covered_until = np.concatenate([[-np.inf], np.maximum.accumulate(base + right)[:-1]]) - base
        left = np.minimum(np.maximum(left, covered_until), right)
        return _NormalizedIntervals(self.owner[order], self.owner_count, left, right, self.volume[order])

    def sums(self, section_count: int, *weights: Reals) -> tuple[Reals, ...]:
        """Sum weights by owner and section (owners, sections); intervals across an edge are divided by time."""
        left, right = self.left * section_count, self.right * section_count
        section = np.floor(left)
        is_whole = (left >= 0) & (right <= section + 1) & (section < section_count)
        crossing = np.flatnonzero(~is_whole & (right > 0) & (left < section_count) & (right > left))
        cell = self.owner * section_count + np.clip(section, 0, section_count - 1).astype(np.int64)
        low, high, owner = left[crossing], right[crossing], self.owner[crossing]
        results: list[Reals] = []
        for weight in weights:
            whole_sums = np.bincount(cell, np.where(is_whole, weight, 0.0), self.owner_count * section_count)
            total = whole_sums.astype(np.float64, copy=False).reshape(self.owner_count, section_count)
            density = weight[crossing] / (high - low)
            for number in range(section_count):
                overlap = np.clip(np.minimum(high, number + 1) - np.maximum(low, number), 0.0, None)
                total[:, number] += np.bincount(owner, density * overlap, self.owner_count)
            results.append(total)
        return tuple(results)


# ---- regular grids


def grid_sections(
    bytes_per_s: Reals,
    offsets: Ints,
    grid_started_s: Reals,
    interval_s: Reals,
    start_s: Reals,
    end_s: Reals,
    section_count: int = SECTION_COUNT,
) -> Sections:
    """Distribute the bytes of regular grids over the sections of each subject's run, which have equal duration.

    Parameters
    ----------
    bytes_per_s : Reals, shape (points,)
        Rate of each step; not finite if missing.
    offsets : Ints, shape (n + 1,)
        Points of each subject.
    grid_started_s, interval_s : Reals, shape (n,)
        Left edge of the first step, and length of the steps [s].
    start_s, end_s : Reals, shape (n,)
        Start and end of each run [s].
    section_count : int
        Number of sections.

    Returns
    -------
    Sections
        Equal to the result of `interval_sections` for the same steps, but computed in a single pass.

    """
    is_known = np.zeros(len(bytes_per_s) + 1, dtype=np.bool_)
    np.isfinite(bytes_per_s, out=is_known[:-1])
    values = np.zeros(len(bytes_per_s) + 1)
    np.copyto(values[:-1], bytes_per_s, where=is_known[:-1])
    duration = end_s - start_s
    edges = start_s[:, None] + duration[:, None] * (np.arange(section_count + 1) / section_count)
    with np.errstate(invalid="ignore", divide="ignore"):
        positions = (edges - grid_started_s[:, None]) / interval_s[:, None]
    is_run = (duration > 0) & (interval_s > 0)
    positions = np.where(is_run[:, None], np.nan_to_num(positions), 0.0)
    positions = np.clip(positions, 0.0, np.diff(offsets)[:, None])
    volume = _step_sums(values, offsets, positions) * interval_s[:, None]
    # reuse the large array, since NumPy would cast the mask to a second one
    values[:] = is_known
    covered_s = _step_sums(values, offsets, positions) * interval_s[:, None]
    return Sections(np.where(is_run[:, None], volume, 0.0), np.where(is_run[:, None], covered_s, 0.0), duration)


def _step_sums(values: Reals, offsets: Ints, positions: Reals) -> Reals:
    """Sum steps between consecutive positions (n, k + 1) of each grid, with partial steps in proportion.

    `values` (points + 1) ends with a padding value, since an index may lie after the last point.
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


def compute_variation_coefficients(section_bytes: Reals) -> Reals:
    """Compute the population standard deviation divided by the mean of each row.

    Parameters
    ----------
    section_bytes : Reals, shape (n, sections)
        Bytes of each section.

    Returns
    -------
    Reals, shape (n,)
        NaN where the mean is 0.

    Notes
    -----
    The four sections are the whole population, so the denominator of the variance is 4.

    """
    mean = section_bytes.mean(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        ratios: Reals = np.where(mean > 0, section_bytes.std(axis=1, ddof=0) / mean, np.nan)
    return ratios


def label_sections(section_bytes: Reals, node_count: Reals, params: ClassParams | None = None) -> Texts:
    """Label subjects by section 4.1 and Algorithm 1; all inequalities are strict, as printed.

    Parameters
    ----------
    section_bytes : Reals, shape (n, 4)
        Bytes of each section.
    node_count : Reals, shape (n,)
        Nodes of the job; NaN or below 1 counts as one node.
    params : ClassParams, optional
        Thresholds.

    Returns
    -------
    Texts, shape (n,)

    """
    params = params or ClassParams()
    s0, s1, s2, s3 = section_bytes.T
    middle, factor = s1 + s2, params.predominance
    volume = section_bytes.sum(axis=1)
    nodes = np.where(node_count >= 1, node_count, 1.0)
    label = np.select(
        [
            (volume <= 0) | (volume / nodes < params.no_usage_bytes),
            compute_variation_coefficients(section_bytes) < params.uniform_cv,
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
    return label.astype(np.str_)


def classify(sections: Sections, node_count: Reals, params: ClassParams | None = None) -> pl.DataFrame:
    """Classify subjects by their four sections.

    Parameters
    ----------
    sections : Sections
        Sections of n subjects.
    node_count : Reals, shape (n,)
        Nodes of the job; NaN if unknown.
    params : ClassParams, optional
        Thresholds.

    Returns
    -------
    pl.DataFrame
        One row per subject, in order, with the columns `outcome`, `label` (NULL unless classified), `section_bytes`,
        `cv` (NULL without I/O), `volume_bytes` (within the run), and `missing_ratio`. The outcome is the first that
        applies of `no_data` (volumes are NULL), `too_short`, `too_many_gaps` (in any section), and `classified`.

    """
    params = params or ClassParams()
    has_data = sections.covered_s.sum(axis=1) > 0
    with np.errstate(invalid="ignore"):
        is_gappy = (sections.section_missing_ratios > params.max_missing_ratio).any(axis=1)
        is_short = sections.duration_s < params.min_duration_s
    outcome = np.select([~has_data, is_short, is_gappy], ["no_data", "too_short", "too_many_gaps"], "classified")
    volume = np.where(has_data, sections.volume_bytes.sum(axis=1), np.nan)
    cv = np.where(has_data, compute_variation_coefficients(sections.volume_bytes), np.nan)
    return pl.DataFrame(
        {
            "outcome": pl.Series(outcome.tolist(), dtype=pl.String),
            "label": pl.Series(label_sections(sections.volume_bytes, node_count, params).tolist(), dtype=pl.String),
            "section_bytes": pl.Series(sections.volume_bytes.tolist(), dtype=pl.List(pl.Float64)),
            "cv": _nullable(cv),
            "volume_bytes": _nullable(volume),
            "missing_ratio": _nullable(sections.missing_ratios),
        }
    ).with_columns(
        pl.when(pl.col("outcome") == "classified").then("label").alias("label"),
        pl.when(pl.col("outcome") != "no_data").then("section_bytes").alias("section_bytes"),
    )


def _nullable(values: Reals) -> pl.Series:
    return pl.Series(values, dtype=pl.Float64).fill_nan(None)
