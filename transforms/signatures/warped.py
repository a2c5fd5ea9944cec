"""Warped runs: where in each run each moment of the application is, by what overlaps.

Runs are brought to one duration first (`stretched`), and then each is shifted against what all of them have in common,
by more or less along its way: dynamic programming finds the shifts that overlap most. A byte of the common curve that a
run lacks costs most, one that only the run has costs little, since it may be foreign; and to change the shift costs, so
that no run follows the noise. The runs' mean clock is the median of their shifts.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, TypeVar

import numpy as np

from iosig.transforms.arrays import AnyReals, Ints, Reals, offsets_of
from iosig.transforms.signatures.averages import quantile_of, quantiles, without_gaps
from iosig.transforms.signatures.bursts import height
from iosig.transforms.signatures.robust_alignment import running_totals
from iosig.transforms.signatures.sample_sets import SampleSet
from iosig.transforms.signatures.signature import Signature
from iosig.transforms.signatures.stretched import Stretched, floored, interference_ratio, on_one_clock, signature_of

Asked = TypeVar("Asked")
Answer = TypeVar("Answer")
Result = TypeVar("Result")

# All numbers here are ours, and were chosen on the families of simulated sites, on other seeds than the study's.

#: runs of the warp have no more steps; a shift is found for so many of them at once
_MOST_STEPS, _BLOCK = 1000, 9
#: runs are aligned again if alignment lowers their interference ratio by at least this much
_RATIO_DROP = 0.02
#: how often the common curve is made anew
_ROUNDS = 2
#: where others are at work for less of the time, single runs are tried as a start, so many of the cleanest, if all of
#: them have less in common than this share of what a clean one moves; but not so little that most must be others'
_CALM_RATIO, _TRIED_RUNS, _TOLD_SHARE, _FOREIGN_SHARE = 0.35, 2, 0.85, 0.5
#: and only if runs are off by less than this share of the reach in the mean: others' bursts lie anywhere
_NEAR_SHARE = 0.2
#: before any shift is known, rates are smoothed over this time
_SMOOTH_S = 10.0
#: rates above so many times the height of what the runs have in common count as much
_MOST_HEIGHTS = 1.5
#: what a byte beyond the common curve costs, where one that is missing costs 1
_EXCESS_COST = 0.15
#: what it costs to change the shift by a step, in steps at the highest rate
_CHANGE_COST = 0.3
#: how far a run may be off: at least, and of the duration
_REACH_S, _REACH_RATIO = 15.0, 0.02
#: sets whose paths are found side by side: they stay in the processor's cache
_MOST_WORKS = 12


def warped_of_each(sets: Iterable[SampleSet]) -> list[Signature]:
    """Return the signature of each set of runs, shifted along their way to where they overlap most.

    Paths of several sets of about one length are found together.
    """
    every = list(sets)
    order = np.argsort([len(one.samples.values) / max(1, one.run_count) for one in every], kind="stable").tolist()
    found = in_turns((_found(every[place]) for place in order), best_paths, _MOST_WORKS)
    return [one for _, one in sorted(zip(order, found, strict=True), key=lambda own: own[0])]


def in_turns(
    works: Iterable[Generator[Asked, Answer, Result]],
    answers: Callable[[Sequence[Asked]], Sequence[Answer]],
    most_works: int,
) -> list[Result]:
    """Return what works come to, in order: each yields what it asks and is sent the answer, as often as it likes.

    What works ask at one turn is answered together, since it is few numbers and most of the time would go to the calls;
    where one ends, another begins. most_works: how many are under way at once, which bounds the memory.
    """
    results: dict[int, Result] = {}
    waiting = enumerate(works)
    turns: list[tuple[int, Generator[Asked, Answer, Result], Any]] = []
    while turns := turns + [(number, work, None) for number, work in islice(waiting, most_works - len(turns))]:
        asked = []
        for number, work, answer in turns:
            try:
                asked.append((number, work, work.send(answer)))
            except StopIteration as over:
                results[number] = over.value
        found = answers([question for *_, question in asked])
        turns = [(number, work, own) for (number, work, _), own in zip(asked, found, strict=True)]
    return [results[number] for number in range(len(results))]


def _found(one: SampleSet) -> Generator[AnyReals, Reals, Signature]:
    runs = on_one_clock(one)
    return Signature.nothing("too_few_samples") if runs is None else signature_of((yield from _warp(runs)))


def warp(runs: Stretched) -> Stretched:
    """Align runs elastically, as `_warp` does, in one batch of their own."""
    return in_turns([_warp(runs)], best_paths, 1)[0]


def _warp(runs: Stretched) -> Generator[AnyReals, Reals, Stretched]:
    """Align runs elastically; align them again if most of the interference was their own misaligned bursts.

    Before alignment, bursts of the application that drift between runs look like interference. The more runs there are,
    the less of these bursts the common curve holds, so the interference ratio rises and the quantile level falls: each
    further run would lower the volume. The ratio of aligned runs does not have that bias.
    """
    aligned = yield from _aligned(runs)
    ratio = interference_ratio(aligned.rates)
    if ratio > runs.foreign_ratio - _RATIO_DROP:
        return aligned
    return (yield from _aligned(replace(runs, foreign_ratio=ratio)))


def _aligned(runs: Stretched) -> Generator[AnyReals, Reals, Stretched]:
    """Shift each run along its way to where it overlaps most with what all runs have in common."""
    known = without_gaps(runs.rates)
    highest = _MOST_HEIGHTS * height(runs.curve[0])
    if not highest > 0:
        return runs
    factor = max(1, -(-known.shape[1] // _MOST_STEPS))
    coarse = _coarse(np.minimum(known, highest) / highest, factor)
    is_calm = runs.foreign_ratio < _CALM_RATIO
    shift = yield from _best_shifts(coarse, runs.level, factor * runs.step_s, is_calm=is_calm)
    count = known.shape[1]
    places = (np.arange(count) + 0.5) / factor - 0.5
    shift = factor * _between(shift, places)
    left = np.arange(count) + shift
    others = None if runs.others is None else _shifted(runs.others, left)
    return replace(runs, rates=_shifted(runs.rates, left), shift=shift, others=others)


def _shifted(rates: Reals, left: Reals) -> Reals:
    """Return rates of steps that begin elsewhere (runs, steps), NaN where most of one was not measured."""
    is_known = np.isfinite(rates)
    if is_known.all():
        known, share = _read(rates, left), _share_inside(left)
    else:
        known, share = (_read(values, left) for values in (np.nan_to_num(rates), is_known.astype(np.float64)))
    return np.where(share > 0.5, known / np.maximum(share, 0.5), np.nan)


def _share_inside(left: Reals) -> Reals:
    """Return how much of steps that begin elsewhere (runs, steps) lies within the run: `_read` of nothing but ones."""
    count = left.shape[1]
    places = np.clip(left, -1.0, count) + 1.0
    found: Reals = np.minimum(np.minimum(places, 1.0), 1.0 - (places - count))
    return found


def _coarse(rates: Reals, factor: int) -> Reals:
    """Return the means of so many steps each; the last one may have fewer."""
    count = -(-rates.shape[1] // factor)
    padded = np.zeros((len(rates), count * factor))
    padded[:, : rates.shape[1]] = rates
    found: Reals = padded.reshape(len(rates), count, factor).mean(axis=2)
    return found


def _between(rows: Reals, places: Reals) -> Reals:
    """Return rows (n, steps) at fractions of steps (places), linear between them and flat outside."""
    low = np.clip(np.floor(places), 0, max(rows.shape[1] - 2, 0)).astype(np.int64)
    share = np.clip(places - low, 0.0, 1.0)
    high = np.minimum(low + 1, rows.shape[1] - 1)
    found: Reals = rows.take(low, axis=1) * (1.0 - share) + rows.take(high, axis=1) * share
    return found


def _read(rates: Reals, left: Reals) -> Reals:
    """Return mean rates of steps that begin elsewhere (runs, steps): of two neighbours' in part; none beyond the ends.

    left (runs, steps), in steps.
    """
    run_count, count = rates.shape
    padded = np.zeros((run_count, count + 3))
    padded[:, 1:-2] = rates
    places = np.clip(left, -1.0, count) + 1.0
    whole = places.astype(np.int64)
    share = places - whole
    whole += np.arange(run_count)[:, None] * (count + 3)
    flat = padded.ravel()
    low = flat.take(whole)
    found: Reals = low + share * (flat.take(whole + 1) - low)
    return found


def _best_shifts(rates: Reals, level: float, step_s: float, *, is_calm: bool) -> Generator[AnyReals, Reals, Reals]:
    """Return shifts, from what unshifted runs have in common, or from one run if that explains more.

    Short bursts that wander by more than their width have nothing in common unshifted; where others are seldom at work,
    what a single run does is all its own.
    """
    met = _Met.of(rates, _reach(rates.shape[1], step_s))
    found, told = yield from _shifted_and_told(rates, met, level, step_s)
    volume = rates.sum(axis=1)
    share = told / max(quantile_of(volume, 0.2), 1e-300)
    if not is_calm or not _FOREIGN_SHARE < share < _TOLD_SHARE:
        return found
    for run in np.argsort(volume, kind="stable")[:_TRIED_RUNS]:
        other, other_told = yield from _shifted_and_told(rates, met, level, step_s, floored(rates[run])[0])
        is_near = float(np.abs(other).mean()) < _NEAR_SHARE * met.reach
        if is_near and other_told > told:
            found, told = other, other_told
    return found


def _reach(count: int, step_s: float) -> int:
    """Return by how many steps a run may be off."""
    return max(2, int(np.ceil((_REACH_S + _REACH_RATIO * count * step_s) / step_s)))


def _shifted_and_told(
    rates: Reals, met: _Met, level: float, step_s: float, start: Reals | None = None
) -> Generator[AnyReals, Reals, tuple[Reals, float]]:
    """Return by how many steps each run is later than all of them together, and how much they have in common then.

    rates (runs, steps): on one clock, 1 at the most. level: the quantile across runs that they have in common. met:
    what they may meet. start (steps): what they are shifted against first; what they have in common unshifted if None.
    """
    from scipy.ndimage import uniform_filter1d

    count = rates.shape[1]
    common = start
    if common is None:
        smooth = uniform_filter1d(rates, max(1, round(_SMOOTH_S / step_s)), axis=1)
        common = floored(quantiles(smooth, level))[0]
    found = np.zeros(rates.shape)
    if not common.any():
        return found, float(floored(quantiles(rates, level))[0].sum())
    for _ in range(_ROUNDS):
        path = yield met.overlaps(common)
        found = _by_the_mean_clock(_between(path, (np.arange(count) - (_BLOCK - 1) / 2) / _BLOCK))
        common, _ = floored(quantiles(_read(rates, np.arange(count) + found), level))
        if not common.any():
            break
    return found, float(common.sum())


def _by_the_mean_clock(shift: Reals) -> Reals:
    """Return shifts against the runs' median clock."""
    steps = np.arange(shift.shape[1], dtype=np.float64)
    clock = np.maximum.accumulate(steps + quantiles(shift, 0.5))
    return _interpolated(steps, clock, steps + shift) - steps


def _interpolated(at: Reals, places: Reals, rows: Reals) -> Reals:
    """Return rows (n, places) at other places (at), linear between them and flat outside, as `numpy.interp` does.

    Once for all rows: which places each lies between, and how far, is the same in all of them.
    """
    last = len(places) - 1
    low = np.clip(np.searchsorted(places, at, side="right") - 1, 0, last)
    high = np.minimum(low + 1, last)
    is_between = (at > places[low]) & (low < last)
    width = np.where(is_between, places[high] - places[low], 1.0)
    left = rows.take(low, axis=1)
    found: Reals = (rows.take(high, axis=1) - left) / width * np.where(is_between, at - places[low], 0.0) + left
    return found


@dataclass(frozen=True, slots=True)
class _Met:
    """What blocks of runs meet with each shift; runs lie side by side in memory, so that shifts of all are one stretch.

    rates (steps, runs): nothing before and after the runs, where shifts reach beyond them. beyond (blocks, shifts,
    runs): what all that a run has there costs.
    """

    rates: AnyReals
    beyond: AnyReals

    @classmethod
    def of(cls, rates: AnyReals, reach: int) -> _Met:
        """Return what runs (runs, steps) meet; in single precision: shifts to be told apart differ by more."""
        run_count, count = rates.shape
        block_count, width = -(-count // _BLOCK), 2 * reach + 1
        padded = np.zeros((run_count, block_count * _BLOCK + 2 * reach), dtype=np.float32)
        padded[:, reach : reach + count] = rates
        total = np.ascontiguousarray(running_totals(padded).T)
        beyond = np.empty((block_count, width, run_count))
        ahead = _windows(total, block_count, width)
        np.subtract(ahead[1:], ahead[:-1], out=beyond[:-1])
        # of a last block with fewer steps, only these
        np.subtract(total[count : count + width], ahead[-1], out=beyond[-1])
        beyond *= -_EXCESS_COST
        return cls(np.ascontiguousarray(padded.T), beyond.astype(np.float32))

    @property
    def reach(self) -> int:
        """By how many steps a run may be off."""
        return int(self.beyond.shape[1]) // 2

    def overlaps(self, common: Reals) -> AnyReals:
        """Return how well runs overlap with what they have in common (blocks, shifts, runs), 0 at best.

        common (steps): in the rates' unit. What a run lacks of it counts in full, what it has beyond it a share. That
        is the same as: all that a run has counts that share, and what it has in common much more; and the second is
        asked only where there is something in common.
        """
        block_count, width, run_count = self.beyond.shape
        levels = np.zeros(block_count * _BLOCK, dtype=self.rates.dtype)
        levels[: len(common)] = common
        levels = levels.reshape(-1, _BLOCK)
        found = self.beyond.copy()
        blocks = np.flatnonzero(levels.any(axis=1))
        if len(blocks):
            levels, size = levels[blocks], width * run_count
            # what a block may meet, once: its steps are windows of that
            met = _windows(self.rates, block_count, width + _BLOCK - 1)[blocks].reshape(len(blocks), -1)
            shared = np.minimum(met[:, :size], levels[:, :1])
            own = np.empty_like(shared)
            for step in range(1, _BLOCK):
                first = step * run_count
                shared += np.minimum(met[:, first : first + size], levels[:, step, None], out=own)
            shared *= self.rates.dtype.type(1.0 + _EXCESS_COST)
            shared -= levels.sum(axis=1)[:, None]
            found[blocks] += shared.reshape(len(blocks), width, run_count)
        return found


def _windows(columns: AnyReals, block_count: int, width: int) -> AnyReals:
    """Return what lies from each block's first step on (blocks, width, runs): a view of columns (steps, runs)."""
    step, run = columns.strides
    return np.lib.stride_tricks.as_strided(
        columns, (block_count, width, columns.shape[1]), (_BLOCK * step, step, run), writeable=False
    )


# ---- paths


def best_paths(scores: Sequence[AnyReals]) -> list[Reals]:
    """Return the shifts (runs, blocks) of sets whose scores (blocks, shifts, runs) are the highest, less the changes.

    The middle one of the shifts is none. Viterbi; sets go side by side, those of most blocks first, so that the runs
    that are still there at a block are the first ones.
    """
    order = sorted(range(len(scores)), key=lambda place: -len(scores[place]))
    asked = [scores[place] for place in order]
    if not asked:
        return []
    sums, left = _side_by_side(asked)
    middles = np.repeat([own.shape[1] // 2 for own in asked], [own.shape[2] for own in asked])
    costs = _costs(sums.shape[1]).astype(sums.dtype)
    sums[0] -= costs.take(middles, axis=1)
    _add_best_ways(sums, left)
    at = _traced(sums, left, costs) - middles
    edges = offsets_of([own.shape[2] for own in asked]).tolist()
    found = {
        place: at[: len(scores[place]), edges[turn] : edges[turn + 1]].T.astype(np.float64)
        for turn, place in enumerate(order)
    }
    return [found[place] for place in range(len(scores))]


def _costs(width: int) -> Reals:
    """Return what it costs to change from each shift to each other (shifts, shifts)."""
    place = np.arange(width)
    costs: Reals = _CHANGE_COST * np.abs(place[:, None] - place)
    return costs


def _side_by_side(scores: Sequence[AnyReals]) -> tuple[AnyReals, Ints]:
    """Return scores in one table (blocks, shifts, runs), and how many runs are left at each block (blocks).

    Those of most blocks come first; of shifts that a set does not have, none is worse.
    """
    block_count, width = len(scores[0]), max(own.shape[1] for own in scores)
    table = np.full((block_count, width, sum(own.shape[2] for own in scores)), -np.inf, dtype=scores[0].dtype)
    left, first = np.zeros(block_count, dtype=np.int64), 0
    for own in scores:
        blocks, shifts, runs = own.shape
        table[:blocks, :shifts, first : first + runs] = own
        left[:blocks] += runs
        first += runs
    return table, left


def _add_best_ways(sums: AnyReals, left: Ints) -> None:
    """Add to each shift's score at a block what the best way to it comes to (blocks, shifts, runs), in place.

    A change costs in proportion, so that a running maximum finds the best way from one side: of windows that are twice
    as wide each time. Both sides go at once, in one place: this is where the time goes.
    """
    width = sums.shape[1]
    slope = (_CHANGE_COST * np.arange(width)).astype(sums.dtype)[:, None]
    slopes = np.stack([slope, -1 * slope[::-1]])
    steps = [1 << power for power in range((width - 1).bit_length())]
    run_count = 0
    for block in range(1, len(sums)):
        if left[block] != run_count:
            run_count = int(left[block])
            # before the first shift there is nothing, as far as windows reach
            ways = np.full((2, 2, steps[-1] + width, run_count), -np.inf, dtype=sums.dtype)
            first, doublings, last = _doublings(ways, steps)
        before = sums[block - 1, :, :run_count]
        np.add(before, slope, out=first[0])
        np.subtract(before, slope, out=first[1, ::-1])
        for here, there, out in doublings:
            np.maximum(here, there, out=out)
        np.subtract(last, slopes, out=last)
        sums[block, :, :run_count] += np.maximum(last[0], last[1, ::-1], out=last[0])


def _doublings(
    ways: AnyReals, steps: Sequence[int]
) -> tuple[AnyReals, list[tuple[AnyReals, AnyReals, AnyReals]], AnyReals]:
    """Return where a running maximum begins, of what and where each of its steps is to be made, and where it ends."""
    room, now, then = steps[-1], ways[0], ways[1]
    first, found = now[:, room:], []
    for step in steps:
        found.append((now[:, room:], now[:, room - step : -step], then[:, room:]))
        now, then = then, now
    return first, found, now[:, room:]


def _traced(sums: AnyReals, left: Ints, costs: AnyReals) -> Ints:
    """Return the shifts of the best path of each run (blocks, runs), the last block's first."""
    at = np.zeros((len(sums), sums.shape[2]), dtype=np.int64)
    later = 0
    for block in range(len(sums) - 1, -1, -1):
        count = int(left[block])
        own = np.ascontiguousarray(sums[block, :, :count].T)
        if later:
            own[:later] -= costs.take(at[block + 1, :later], axis=0)
        at[block, :count] = own.argmax(axis=1)
        later = count
    return at
