"""Samples of one application brought to one form: 1-s points, equal lengths, less noise.

IOSI (Liu et al., FAST'14), section 5.1, after outlier elimination (`left_out`): granularity refinement,
duration correction, noise reduction. Beside them partial samples of very long runs (2.3), and runs on several node
counts as one set (6.4).

What was not measured is NaN, and never counts for zero. Short gaps are filled from what was measured beside them; what
is left of long ones is left out of each mean. `Preprocessed.complete` is for methods that need every point. A sample
that was hardly measured is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from iosig.transforms.arrays import Ints, Ragged, Reals, offsets_of, owners, places_within
from iosig.transforms.signatures.sample_sets import SampleSet, SampleSets

#: unmeasured stretches up to this are interpolated (ours: five polls of 2 s; in a longer one a short burst is missed)
LONGEST_GAP_S = 10.0
#: samples that lack more after that are left out (ours)
MOST_MISSING_RATIO = 0.25
#: samples that are longer than the shortest by up to this share are trimmed just as the paper says, longer ones evenly
#: (IOSI 5.1: "typically less than 10%"); see `duration_corrected`
PUBLISHED_EXCESS_RATIO = 0.1


@dataclass(frozen=True, slots=True)
class Preprocessed:
    """Samples in one form.

    values (runs, points): bytes per second above the background, one point each second; NaN where not measured.
    background_bytes_per_s: what was subtracted; NaN where nothing was measured. run (runs): which runs of the set these
    are, since hardly measured ones are left out.
    """

    values: Reals
    background_bytes_per_s: float
    run: Ints

    @property
    def complete(self) -> Reals:
        """The values with what was not measured taken from the other runs (runs, points).

        The median of those that were measured at that point, so that a gap votes with the majority; 0 where none was.
        """
        is_missing = np.isnan(self.values)
        if not is_missing.any():
            return self.values
        columns = np.flatnonzero(is_missing.any(axis=0))
        found = self.values.copy()
        found[:, columns] = np.where(is_missing[:, columns], medians(self.values[:, columns]), self.values[:, columns])
        return found


def preprocessed(one: SampleSet) -> Preprocessed:
    """Bring the samples of one set to one form: refined, of one length, without background; IOSI 5.1."""
    samples = bridged(one.samples, one.interval_s)
    counts = samples.counts
    is_usable = (counts > 0) & (_missing(samples) <= MOST_MISSING_RATIO * counts)
    if not is_usable.all():
        samples = SampleSet(samples, one.interval_s, one.started_s, one.duration_s).kept(is_usable).samples
    points = refined(samples, one.interval_s)
    values, background = noise_reduced(duration_corrected(points))
    return Preprocessed(values, background, np.flatnonzero(is_usable))


def _missing(samples: Ragged) -> Ints:
    """Return how many steps of each sample were not measured (runs)."""
    is_missing = np.isnan(samples.values)
    if not is_missing.any():
        return np.zeros(len(samples.offsets) - 1, dtype=np.int64)
    return np.bincount(owners(samples.offsets)[is_missing], minlength=len(samples.offsets) - 1)


# ---- granularity refinement


def bridged(samples: Ragged, interval_s: float, longest_gap_s: float = LONGEST_GAP_S) -> Ragged:
    """Fill gaps up to a length linearly from the measured steps beside them; at an end, with the nearest one.

    Longer gaps stay as they are. What is not finite is not measured, and NaN afterwards.
    """
    is_known = np.isfinite(samples.values)
    if is_known.all():
        return samples
    values = np.where(is_known, samples.values, np.nan)
    places = np.arange(len(values))
    owner = owners(samples.offsets)
    first, last = samples.offsets[owner], samples.offsets[owner + 1] - 1
    before = np.maximum.accumulate(np.where(is_known, places, -1))
    after = np.minimum.accumulate(np.where(is_known, places, len(values))[::-1])[::-1]
    has_before, has_after = before >= first, after <= last
    length = np.where(has_after, after, last + 1) - np.where(has_before, before, first - 1) - 1
    is_short = ~is_known & (has_before | has_after) & (length * interval_s <= longest_gap_s)
    gap = np.flatnonzero(is_short)
    left = np.where(has_before, before, after)[gap]
    right = np.where(has_after, after, before)[gap]
    # at an end both are the same one, before it or behind it
    share = np.clip((gap - left) / np.maximum(right - left, 1), 0.0, 1.0)
    values[gap] = values[left] * (1.0 - share) + values[right] * share
    return Ragged(values, samples.offsets)


def refined(samples: Ragged, interval_s: float) -> Ragged:
    """Return samples in points of 1 s by linear interpolation (IOSI 5.1).

    A step of interval_s stands for its middle. The points run from the middle of the first step on, as long as they
    do not pass that of the last one: n steps of 2 s make 2 n - 1 points, and each new one is the mean of its
    neighbours. Steps under 1 s are first brought to the mean rates of whole seconds. A point next to an unmeasured step
    is not measured.
    """
    if not (np.isfinite(interval_s) and interval_s > 0):
        raise ValueError("an interval is not a positive number")
    if interval_s < 1.0:
        return _coarsened(samples, interval_s)
    counts = samples.counts
    # a last point on the last middle must not be lost to rounding
    points = np.where(counts > 0, np.floor((counts - 1) * interval_s + 1e-9) + 1, 0).astype(np.int64)
    offsets = offsets_of(points)
    if interval_s == 2.0:
        return Ragged(_doubled(samples), offsets)
    owner = owners(offsets)
    position = places_within(points) / interval_s
    step = np.minimum(np.floor(position + 1e-12), counts[owner] - 1).astype(np.int64)
    share = np.clip(position - step, 0.0, 1.0)
    left = samples.values[samples.offsets[owner] + step]
    right = samples.values[samples.offsets[owner] + np.minimum(step + 1, counts[owner] - 1)]
    # nothing of the right one: it may not be measured
    return Ragged(np.where(share <= 1e-12, left, left * (1.0 - share) + right * share), offsets)


def _doubled(samples: Ragged) -> Reals:
    """Put the mean of its neighbours between every two steps."""
    values = samples.values
    both = np.empty(2 * len(values))
    both[::2] = values
    # halves first: a sum of huge ones leaves the range
    both[1:-1:2] = values[1:] * 0.5 + values[:-1] * 0.5
    ends = samples.offsets[1:][samples.counts > 0]
    is_left = np.ones(len(both), dtype=np.bool_)
    is_left[2 * ends - 1] = False
    return both[is_left]


def _coarsened(samples: Ragged, interval_s: float) -> Ragged:
    """Return the mean rate of what was measured in each second that has begun; the last one may be a part of one."""
    counts, owner = samples.counts, owners(samples.offsets)
    # many short steps: one that crosses a second's edge counts for both by time
    began = places_within(counts) * interval_s
    second = np.floor(began + 1e-9).astype(np.int64)
    over = np.clip(began + interval_s - (second + 1), 0.0, None)
    over[over < 1e-9] = 0.0
    points = np.ceil(counts * interval_s - 1e-9).astype(np.int64)
    offsets = offsets_of(points)
    is_known = np.isfinite(samples.values)
    rates = np.where(is_known, samples.values, 0.0)
    cell = offsets[owner] + second
    volume, time = np.zeros(offsets[-1] + 1), np.zeros(offsets[-1] + 1)
    for place, part in ((cell, interval_s - over), (cell + (over > 0), over)):
        volume += np.bincount(place, rates * part, len(volume))
        time += np.bincount(place, is_known * part, len(volume))
    with np.errstate(invalid="ignore"):
        return Ragged(np.where(time > 0, volume / time, np.nan)[:-1], offsets)


# ---- duration correction


def duration_corrected(samples: Ragged) -> Reals:
    """Drop points of each sample at regular intervals, so that all are as long as the shortest (runs, points).

    IOSI 5.1: noise can only prolong a run. "If a sample is 4% longer than the shortest one, then we remove from it the
    1st, 26th, 51st, ..., data points": with N points in the shortest sample and r to drop, those numbered
    floor(i N / r), i = 0 ... r - 1, counted from 0. That leaves the last r or so untouched, which shifts what lies
    there by r^2 / (N + r) points: little as long as r is little. Samples that are longer by more than
    PUBLISHED_EXCESS_RATIO lose those numbered floor(i (N + r) / r): the same interval to the end.
    """
    counts = samples.counts
    if not len(counts):
        return np.zeros((0, 0))
    shortest = int(counts.min())
    dropped = counts - shortest
    span = np.where(dropped <= PUBLISHED_EXCESS_RATIO * shortest, shortest, counts)
    return _without(samples, dropped, span).reshape(len(counts), shortest)


def _without(samples: Ragged, dropped: Ints, span: Ints) -> Reals:
    """Drop so many points of each piece, at regular intervals over its first `span` points, from its first one on."""
    owner, number = owners(offsets_of(dropped)), places_within(dropped)
    is_left = np.ones(len(samples.values), dtype=np.bool_)
    is_left[samples.offsets[owner] + number * span[owner] // dropped[owner]] = False
    return samples.values[is_left]


# ---- noise reduction


def noise_reduced(values: Reals) -> tuple[Reals, float]:
    """Subtract the background from samples (runs, points), floor 0; return them and the background.

    IOSI 5.1: the background is the mean of those points of all samples that are below the mean of all points. Nothing
    where all points are the same; NaN where none is measured. Unmeasured points stay so.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        is_plain = bool(values.size and np.isfinite(values.sum()))
    if is_plain:
        background = _below_mean(values)
        above = values - background
        return np.maximum(above, 0.0, out=above), background
    is_known = np.isfinite(values)
    known = values[is_known]
    # by the largest first: a sum of huge ones leaves the range
    highest = float(known.max(initial=0.0)) or 1.0
    background = _below_mean(known / highest) * highest if len(known) else float("nan")
    return np.maximum(np.where(is_known, values, np.nan) - background, 0.0), background


def _below_mean(values: Reals) -> float:
    """Return the mean of those values that are below the mean of all; 0 if none is."""
    is_low = values < values.mean()
    count = int(np.count_nonzero(is_low))
    # all of them: they are the same, and their mean is rounded
    return float((values * is_low).sum() / count) if 0 < count < values.size else 0.0


def medians(values: Reals) -> Reals:
    """Return the median of what was measured in each column (points); 0 where nothing was."""
    ordered = np.sort(values, axis=0)  # NaN last
    count = np.isfinite(values).sum(axis=0)
    places = np.arange(values.shape[1])
    low = ordered[np.maximum(count - 1, 0) // 2, places]
    high = ordered[np.minimum(count // 2, len(values) - 1), places]
    return np.where(count > 0, low * 0.5 + high * 0.5, 0.0)


# ---- other sets


def partial(one: SampleSet, duration_s: float) -> SampleSet:
    """Return the first seconds of each run, all of shorter ones: partial samples of very long runs (IOSI 2.3).

    The first ones, since all runs have their start in common, while noise shifts what follows the further the longer it
    goes on. The last step reaches the end of the part or beyond it.
    """
    if not duration_s > 0:
        raise ValueError("a duration is above 0")
    counts = one.samples.counts
    steps = np.ceil((duration_s - one.started_s) / one.interval_s - 1e-9)
    steps = np.clip(np.where(np.isfinite(steps), steps, counts), 0, counts).astype(np.int64)
    values = one.samples.values[places_within(counts) < np.repeat(steps, counts)]
    part = np.fmin(duration_s, one.duration_s)
    return SampleSet(Ragged(values, offsets_of(steps)), one.interval_s, one.started_s, part)


def over_node_counts(sets: Sequence[SampleSet]) -> SampleSet:
    """Return the runs of one application on several node counts as one set, each as long as the shortest's.

    IOSI 6.4 and Figure 20 (weak scaling): peaks stay, volume and the time that it takes grow with the node count;
    "IOSI normalizes the data sets to that of the shortest job", and gives its signature. Here each set's steps are
    dropped at regular intervals by the ratio of its median duration to the shortest of these; how runs of one set
    differ stays, and with it what makes an outlier. Volumes shrink by the same ratio. Runs of unknown duration are left
    out. Sets of other steps than the first one's are brought to 1 s, as all then are.
    """
    usable = [one.kept(np.isfinite(one.duration_s) & (one.duration_s > 0)) for one in sets]
    usable = [one for one in usable if one.run_count]
    if not usable:
        return SampleSet(Ragged(np.zeros(0), np.zeros(1, np.int64)), 1.0, np.zeros(0), np.zeros(0))
    if len({one.interval_s for one in usable}) > 1:
        usable = [_in_seconds(one) for one in usable]
    medians = np.array([np.median(one.duration_s) for one in usable])
    all_of_them = SampleSets.of(
        [_shrunk(one, ratio) for one, ratio in zip(usable, medians.min() / medians, strict=True)]
    )
    return SampleSet(all_of_them.samples, usable[0].interval_s, all_of_them.started_s, all_of_them.duration_s)


def _in_seconds(one: SampleSet) -> SampleSet:
    """Return a set in points of 1 s; a first step's middle is the middle of its first point."""
    shift = (one.interval_s - 1.0) / 2 if one.interval_s > 1.0 else 0.0
    return SampleSet(refined(one.samples, one.interval_s), 1.0, one.started_s + shift, one.duration_s)


def _shrunk(one: SampleSet, ratio: float) -> SampleSet:
    """Keep a share of the steps of each sample, at regular intervals."""
    counts = one.samples.counts
    kept = np.ceil(counts * ratio - 1e-9).astype(np.int64)
    offsets = offsets_of(kept)
    values = _without(one.samples, counts - kept, counts)
    return SampleSet(Ragged(values, offsets), one.interval_s, one.started_s * ratio, one.duration_s * ratio)
