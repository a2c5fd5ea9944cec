"""Extract signatures by the `elastic` method, which shifts runs of normalized duration elastically for maximum overlap.

After normalization (`time_normalized`), each run is shifted against the common curve by an amount that varies along the
run. Dynamic programming finds the shifts of the highest overlap. A byte of the common curve that a run lacks costs
most. A byte that only the run has costs little, since it may be interference. Changes of the shift have a cost, so that
runs do not follow noise. The time axis of the result is that of the median shift.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, TypeVar

import numpy as np

from iosig.transforms.arrays import AnyReals, Ints, Reals, offsets_of
from iosig.transforms.signatures.averages import nan_quantile, quantile_1d, replace_nan
from iosig.transforms.signatures.bursts import burst_height
from iosig.transforms.signatures.robust_alignment import cumulative_sums
from iosig.transforms.signatures.sample_sets import SampleSet
from iosig.transforms.signatures.signature import Signature
from iosig.transforms.signatures.time_normalized import (
    TimeNormalizedRuns,
    build_signature,
    estimate_interference_ratio,
    normalize_durations,
    subtract_baseline,
)

Request = TypeVar("Request")
Response = TypeVar("Response")
Result = TypeVar("Result")

#: maximum number of steps of a run during alignment; longer runs are averaged
_MAX_STEPS = 1000
#: number of steps with the same shift
BLOCK_STEPS = 9
#: number of updates of the common curve
_ROUNDS = 2
#: maximum number of sets per batch of paths, which fits into the processor's cache
_MAX_BATCH_SETS = 12


@dataclass(frozen=True, slots=True)
class ElasticParams:
    """Constants of the alignment, chosen on the simulated families of sites (seeds other than the study's).

    Of seven settings (steps, blocks, smoothing, costs), the same one is best on any eleven of the twelve families (4
    seeds, 720 sets).

    Attributes
    ----------
    min_ratio_drop
        Minimum decrease of the interference ratio by alignment for the runs to be aligned again.
    max_calm_ratio
        Interference ratio below which single runs are tried as the initial curve.
    max_trial_runs
        Number of runs that are tried; they have the smallest volumes.
    min_common_share, max_common_share
        Range of the common volume, relative to that of a clean run, in which single runs are tried. Above it, the
        common curve is good; below it, most of the traffic must be interference.
    max_trial_shift_ratio
        Largest mean shift for a single run as the initial curve, relative to the largest possible shift. Interference
        would be anywhere, and so cause large shifts.
    smoothing_s
        Width of the moving average for the initial curve, while shifts are unknown [s].
    max_height_ratio
        Rates are clipped at this multiple of the common curve's height.
    excess_cost
        Cost of a byte above the common curve; a missing byte costs 1.
    change_cost
        Cost of changing the shift by one step, in steps at the highest rate.
    min_shift_s, max_shift_ratio
        Maximum shift: a constant [s], plus a fraction of the duration.
    """

    min_ratio_drop: float = 0.02
    max_calm_ratio: float = 0.35
    max_trial_runs: int = 2
    max_common_share: float = 0.85
    min_common_share: float = 0.5
    max_trial_shift_ratio: float = 0.2
    smoothing_s: float = 10.0
    max_height_ratio: float = 1.5
    excess_cost: float = 0.15
    change_cost: float = 0.3
    min_shift_s: float = 15.0
    max_shift_ratio: float = 0.02


PARAMS = ElasticParams()


def extract_elastic(sets: Iterable[SampleSet]) -> list[Signature]:
    """Extract the signature of each set from its elastically aligned runs.

    Parameters
    ----------
    sets
        Runs of typical duration.

    Returns
    -------
    list of Signature
        Signatures in the order of the sets. The paths of several sets of similar length are computed in one batch.
    """
    sample_sets = list(sets)
    lengths = [len(one.samples.values) / max(1, one.run_count) for one in sample_sets]
    order = np.argsort(lengths, kind="stable").tolist()
    signatures = run_in_batches((_extract(sample_sets[index]) for index in order), find_best_paths, _MAX_BATCH_SETS)
    return [signature for _, signature in sorted(zip(order, signatures, strict=True), key=lambda item: item[0])]


def run_in_batches(
    tasks: Iterable[Generator[Request, Response, Result]],
    respond: Callable[[Sequence[Request]], Sequence[Response]],
    max_tasks: int,
) -> list[Result]:
    """Run generators concurrently, and answer their requests in batches.

    Each task yields requests and receives the responses, any number of times. A batch saves the overhead of many calls
    on small arrays.

    Parameters
    ----------
    tasks
        Generators; each is started once fewer than `max_tasks` are active.
    respond
        Computes the responses to a batch of requests.
    max_tasks
        Maximum number of simultaneously active tasks, which bounds memory use.

    Returns
    -------
    list
        The return values of the tasks, in order.
    """
    results: dict[int, Result] = {}
    waiting = enumerate(tasks)
    active: list[tuple[int, Generator[Request, Response, Result], Any]] = []
    while active := active + [(number, task, None) for number, task in islice(waiting, max_tasks - len(active))]:
        requests = []
        for number, task, response in active:
            try:
                requests.append((number, task, task.send(response)))
            except StopIteration as finished:
                results[number] = finished.value
        responses = respond([request for *_, request in requests])
        active = [(number, task, response) for (number, task, _), response in zip(requests, responses, strict=True)]
    return [results[number] for number in range(len(results))]


def _extract(sample_set: SampleSet) -> Generator[AnyReals, Reals, Signature]:
    runs = normalize_durations(sample_set)
    if runs is None:
        return Signature.missing("too_few_samples")
    return build_signature((yield from _align(runs)))


def align_elastically(runs: TimeNormalizedRuns) -> TimeNormalizedRuns:
    """Align runs with a common curve by shifts that vary along each run.

    Parameters
    ----------
    runs
        Runs of normalized duration.

    Returns
    -------
    TimeNormalizedRuns
        The runs with `shift`, in steps, and with the interference ratio of the aligned runs if it is clearly lower.
    """
    return run_in_batches([_align(runs)], find_best_paths, 1)[0]


def _align(runs: TimeNormalizedRuns) -> Generator[AnyReals, Reals, TimeNormalizedRuns]:
    """Align runs elastically; align them again if most of the interference was their own misaligned bursts.

    Before alignment, bursts of the application that drift between runs look like interference. With more runs, the
    common curve contains a smaller part of these bursts, so the interference ratio rises and the quantile level falls:
    each further run would lower the volume. The ratio of aligned runs does not have that bias.
    """
    aligned = yield from _align_once(runs)
    ratio = estimate_interference_ratio(aligned.rates)
    if ratio > runs.interference_ratio - PARAMS.min_ratio_drop:
        return aligned
    return (yield from _align_once(replace(runs, interference_ratio=ratio)))


def _align_once(runs: TimeNormalizedRuns) -> Generator[AnyReals, Reals, TimeNormalizedRuns]:
    """Shift each run for maximum overlap with the common curve."""
    known = replace_nan(runs.rates)
    highest = PARAMS.max_height_ratio * burst_height(runs.curve[0])
    if not highest > 0:
        return runs
    factor = max(1, -(-known.shape[1] // _MAX_STEPS))
    coarse = _average_steps(np.minimum(known, highest) / highest, factor)
    is_calm = runs.interference_ratio < PARAMS.max_calm_ratio
    shift = yield from _find_shifts(coarse, runs.level, factor * runs.step_s, is_calm=is_calm)
    count = known.shape[1]
    places = (np.arange(count) + 0.5) / factor - 0.5
    shift = factor * _interpolate_columns(shift, places)
    left = np.arange(count) + shift
    interference = None if runs.interference is None else _shift_rates(runs.interference, left)
    return replace(runs, rates=_shift_rates(runs.rates, left), shift=shift, interference=interference)


def _shift_rates(rates: Reals, left: Reals) -> Reals:
    """Read rates in shifted steps (runs, steps); NaN where less than half of a step was measured."""
    is_known = np.isfinite(rates)
    if is_known.all():
        known, share = _read_with_shift(rates, left), _share_inside(left)
    else:
        known, share = (
            _read_with_shift(values, left) for values in (np.nan_to_num(rates), is_known.astype(np.float64))
        )
    return np.where(share > 0.5, known / np.maximum(share, 0.5), np.nan)


def _share_inside(left: Reals) -> Reals:
    """Fraction of each shifted step (runs, steps) within the run: `_read_with_shift` of all ones, but faster."""
    count = left.shape[1]
    places = np.clip(left, -1.0, count) + 1.0
    share: Reals = np.minimum(np.minimum(places, 1.0), 1.0 - (places - count))
    return share


def _average_steps(rates: Reals, factor: int) -> Reals:
    """Average each group of `factor` steps; the last group may be smaller, and is padded with zeros."""
    count = -(-rates.shape[1] // factor)
    padded = np.zeros((len(rates), count * factor))
    padded[:, : rates.shape[1]] = rates
    means: Reals = padded.reshape(len(rates), count, factor).mean(axis=2)
    return means


def _interpolate_columns(rows: Reals, places: Reals) -> Reals:
    """Interpolate rows (n, steps) linearly at fractional steps (places), constant outside."""
    low = np.clip(np.floor(places), 0, max(rows.shape[1] - 2, 0)).astype(np.int64)
    fraction = np.clip(places - low, 0.0, 1.0)
    high = np.minimum(low + 1, rows.shape[1] - 1)
    read: Reals = rows.take(low, axis=1) * (1.0 - fraction) + rows.take(high, axis=1) * fraction
    return read


def _read_with_shift(rates: Reals, left: Reals) -> Reals:
    """Mean rates of steps that start at fractional steps `left` (runs, steps); zero outside the run."""
    run_count, count = rates.shape
    padded = np.zeros((run_count, count + 3))
    padded[:, 1:-2] = rates
    places = np.clip(left, -1.0, count) + 1.0
    whole = places.astype(np.int64)
    fraction = places - whole
    whole += np.arange(run_count)[:, None] * (count + 3)
    flat = padded.ravel()
    low = flat.take(whole)
    read: Reals = low + fraction * (flat.take(whole + 1) - low)
    return read


def _find_shifts(rates: Reals, level: float, step_s: float, *, is_calm: bool) -> Generator[AnyReals, Reals, Reals]:
    """Find shifts, starting from the common curve of unshifted runs, or from a single run if that explains more.

    Short bursts that drift by more than their width have no common curve before alignment. With little interference, a
    single run is mostly the application's own traffic.
    """
    overlap = _BlockOverlap.from_rates(rates, _max_shift(rates.shape[1], step_s))
    shifts, common_volume = yield from _shift_to_common(rates, overlap, level, step_s)
    volume = rates.sum(axis=1)
    share = common_volume / max(quantile_1d(volume, 0.2), 1e-300)
    if not is_calm or not PARAMS.min_common_share < share < PARAMS.max_common_share:
        return shifts
    for run in np.argsort(volume, kind="stable")[: PARAMS.max_trial_runs]:
        start = subtract_baseline(rates[run])[0]
        trial_shifts, trial_volume = yield from _shift_to_common(rates, overlap, level, step_s, start)
        is_near = float(np.abs(trial_shifts).mean()) < PARAMS.max_trial_shift_ratio * overlap.max_shift
        if is_near and trial_volume > common_volume:
            shifts, common_volume = trial_shifts, trial_volume
    return shifts


def _max_shift(step_count: int, step_s: float) -> int:
    """Largest shift of a run, in steps."""
    return max(2, int(np.ceil((PARAMS.min_shift_s + PARAMS.max_shift_ratio * step_count * step_s) / step_s)))


def _shift_to_common(
    rates: Reals, overlap: _BlockOverlap, level: float, step_s: float, start: Reals | None = None
) -> Generator[AnyReals, Reals, tuple[Reals, float]]:
    """Find the delay of each run relative to the median run [steps], and the resulting volume of the common curve.

    rates (runs, steps): clipped at 1. level: level of the quantile across runs. overlap: overlap of the same rates.
    start (steps): initial common curve, by default that of the unshifted runs, smoothed.
    """
    from scipy.ndimage import uniform_filter1d

    count = rates.shape[1]
    common = start
    if common is None:
        smoothed = uniform_filter1d(rates, max(1, round(PARAMS.smoothing_s / step_s)), axis=1)
        common = subtract_baseline(nan_quantile(smoothed, level))[0]
    shifts = np.zeros(rates.shape)
    if not common.any():
        return shifts, float(subtract_baseline(nan_quantile(rates, level))[0].sum())
    for _ in range(_ROUNDS):
        path = yield overlap.score(common)
        blocks = (np.arange(count) - (BLOCK_STEPS - 1) / 2) / BLOCK_STEPS
        shifts = _subtract_median_shift(_interpolate_columns(path, blocks))
        common, _ = subtract_baseline(nan_quantile(_read_with_shift(rates, np.arange(count) + shifts), level))
        if not common.any():
            break
    return shifts, float(common.sum())


def _subtract_median_shift(shifts: Reals) -> Reals:
    """Subtract the median shift of the runs."""
    steps = np.arange(shifts.shape[1], dtype=np.float64)
    median_time = np.maximum.accumulate(steps + nan_quantile(shifts, 0.5))
    return _interpolate_rows(steps, median_time, steps + shifts) - steps


def _interpolate_rows(at: Reals, places: Reals, rows: Reals) -> Reals:
    """Apply `numpy.interp` to each of several rows (n, places), at the same places `at`.

    The neighbors and fractions are computed once for all rows.
    """
    last = len(places) - 1
    low = np.clip(np.searchsorted(places, at, side="right") - 1, 0, last)
    high = np.minimum(low + 1, last)
    is_between = (at > places[low]) & (low < last)
    width = np.where(is_between, places[high] - places[low], 1.0)
    left = rows.take(low, axis=1)
    read: Reals = (rows.take(high, axis=1) - left) / width * np.where(is_between, at - places[low], 0.0) + left
    return read


@dataclass(frozen=True, slots=True)
class _BlockOverlap:
    """Overlap of blocks of runs with a common curve, at each shift.

    rates (steps, runs): rates, zero-padded by the largest shift. Runs are adjacent in memory, so that the shifts of all
    runs are contiguous. excess_scores (blocks, shifts, runs): score against a common curve of zero.
    """

    rates: AnyReals
    excess_scores: AnyReals

    @classmethod
    def from_rates(cls, rates: AnyReals, max_shift: int) -> _BlockOverlap:
        """Prepare rates (runs, steps), in single precision, since relevant differences exceed its error."""
        run_count, count = rates.shape
        block_count, width = -(-count // BLOCK_STEPS), 2 * max_shift + 1
        padded = np.zeros((run_count, block_count * BLOCK_STEPS + 2 * max_shift), dtype=np.float32)
        padded[:, max_shift : max_shift + count] = rates
        total = np.ascontiguousarray(cumulative_sums(padded).T)
        excess = np.empty((block_count, width, run_count))
        windows = _view_windows(total, block_count, width)
        np.subtract(windows[1:], windows[:-1], out=excess[:-1])
        # the last block may be shorter
        np.subtract(total[count : count + width], windows[-1], out=excess[-1])
        excess *= -PARAMS.excess_cost
        return cls(np.ascontiguousarray(padded.T), excess.astype(np.float32))

    @property
    def max_shift(self) -> int:
        """Largest shift of a run, in steps."""
        return int(self.excess_scores.shape[1]) // 2

    def score(self, common: Reals) -> AnyReals:
        """Score the overlap of each run with a common curve (steps) at each shift (blocks, shifts, runs); 0 is best.

        The score is minus the missing bytes, minus `excess_cost` times the excess bytes. Equivalently, all bytes of a
        run count as excess, with a correction for the common bytes. Only blocks with a positive common curve need the
        correction.
        """
        block_count, width, run_count = self.excess_scores.shape
        levels = np.zeros(block_count * BLOCK_STEPS, dtype=self.rates.dtype)
        levels[: len(common)] = common
        levels = levels.reshape(-1, BLOCK_STEPS)
        scores = self.excess_scores.copy()
        blocks = np.flatnonzero(levels.any(axis=1))
        if len(blocks):
            levels, size = levels[blocks], width * run_count
            # copied once per block: its steps are windows of the copy
            block_rates = _view_windows(self.rates, block_count, width + BLOCK_STEPS - 1)[blocks].reshape(
                len(blocks), -1
            )
            shared = np.minimum(block_rates[:, :size], levels[:, :1])
            buffer = np.empty_like(shared)
            for step in range(1, BLOCK_STEPS):
                first = step * run_count
                shared += np.minimum(block_rates[:, first : first + size], levels[:, step, None], out=buffer)
            shared *= self.rates.dtype.type(1.0 + PARAMS.excess_cost)
            shared -= levels.sum(axis=1)[:, None]
            scores[blocks] += shared.reshape(len(blocks), width, run_count)
        return scores


def _view_windows(columns: AnyReals, block_count: int, width: int) -> AnyReals:
    """View `width` rows of columns (steps, runs) from each block's first step on (blocks, width, runs)."""
    step, run = columns.strides
    return np.lib.stride_tricks.as_strided(
        columns, (block_count, width, columns.shape[1]), (BLOCK_STEPS * step, step, run), writeable=False
    )


# ---- paths


def find_best_paths(scores: Sequence[AnyReals]) -> list[Reals]:
    """Find the shifts with the highest total score minus the cost of changes, by the Viterbi algorithm.

    Parameters
    ----------
    scores : each (blocks, shifts, runs)
        One array per set; the middle shift is 0, where paths start.

    Returns
    -------
    list of (runs, blocks)
        Shifts in steps.

    Notes
    -----
    Sets are combined in one table, those with the most blocks first, so that the runs that reach a block are in the
    first columns.
    """
    order = sorted(range(len(scores)), key=lambda index: -len(scores[index]))
    ordered = [scores[index] for index in order]
    if not ordered:
        return []
    sums, run_counts = _combine_scores(ordered)
    middles = np.repeat([part.shape[1] // 2 for part in ordered], [part.shape[2] for part in ordered])
    costs = _change_costs(sums.shape[1]).astype(sums.dtype)
    sums[0] -= costs.take(middles, axis=1)
    _accumulate_scores(sums, run_counts)
    at = _trace_back(sums, run_counts, costs) - middles
    edges = offsets_of([part.shape[2] for part in ordered]).tolist()
    paths = {
        index: at[: len(scores[index]), edges[rank] : edges[rank + 1]].T.astype(np.float64)
        for rank, index in enumerate(order)
    }
    return [paths[index] for index in range(len(scores))]


def _change_costs(width: int) -> Reals:
    """Compute the cost of a change from each shift to each other shift (shifts, shifts)."""
    place = np.arange(width)
    costs: Reals = PARAMS.change_cost * np.abs(place[:, None] - place)
    return costs


def _combine_scores(scores: Sequence[AnyReals]) -> tuple[AnyReals, Ints]:
    """Combine scores in one table (blocks, shifts, runs), with the number of runs that reach each block (blocks).

    The sets with the most blocks come first. Shifts that a set does not have get a score of minus infinity.
    """
    block_count, width = len(scores[0]), max(part.shape[1] for part in scores)
    table = np.full((block_count, width, sum(part.shape[2] for part in scores)), -np.inf, dtype=scores[0].dtype)
    run_counts, first = np.zeros(block_count, dtype=np.int64), 0
    for part in scores:
        blocks, shifts, runs = part.shape
        table[:blocks, :shifts, first : first + runs] = part
        run_counts[:blocks] += runs
        first += runs
    return table, run_counts


def _accumulate_scores(sums: AnyReals, run_counts: Ints) -> None:
    """Add to each shift's score the best score of a path to it (blocks, shifts, runs), in place.

    The cost of a change is linear, so a running maximum with windows of doubling width finds the best predecessor on
    one side. Both sides are in one buffer, since this loop dominates the run time.
    """
    width = sums.shape[1]
    slope = (PARAMS.change_cost * np.arange(width)).astype(sums.dtype)[:, None]
    slopes = np.stack([slope, -1 * slope[::-1]])
    steps = [1 << power for power in range((width - 1).bit_length())]
    run_count = 0
    for block in range(1, len(sums)):
        if run_counts[block] != run_count:
            run_count = int(run_counts[block])
            # minus infinity before the first shift, as far as windows reach
            buffers = np.full((2, 2, steps[-1] + width, run_count), -np.inf, dtype=sums.dtype)
            first, doublings, last = _plan_doublings(buffers, steps)
        before = sums[block - 1, :, :run_count]
        np.add(before, slope, out=first[0])
        np.subtract(before, slope, out=first[1, ::-1])
        for here, there, out in doublings:
            np.maximum(here, there, out=out)
        np.subtract(last, slopes, out=last)
        sums[block, :, :run_count] += np.maximum(last[0], last[1, ::-1], out=last[0])


def _plan_doublings(
    buffers: AnyReals, steps: Sequence[int]
) -> tuple[AnyReals, list[tuple[AnyReals, AnyReals, AnyReals]], AnyReals]:
    """Prepare the views of a running maximum: its input, the operands and output of each step, and its result."""
    margin, source, target = steps[-1], buffers[0], buffers[1]
    first, doublings = source[:, margin:], []
    for step in steps:
        doublings.append((source[:, margin:], source[:, margin - step : -step], target[:, margin:]))
        source, target = target, source
    return first, doublings, source[:, margin:]


def _trace_back(sums: AnyReals, run_counts: Ints, costs: AnyReals) -> Ints:
    """Trace the best path of each run (blocks, runs) back from the last block."""
    at = np.zeros((len(sums), sums.shape[2]), dtype=np.int64)
    later = 0
    for block in range(len(sums) - 1, -1, -1):
        count = int(run_counts[block])
        scores = np.ascontiguousarray(sums[block, :, :count].T)
        if later:
            scores[:later] -= costs.take(at[block + 1, :later], axis=0)
        at[block, :count] = scores.argmax(axis=1)
        later = count
    return at
