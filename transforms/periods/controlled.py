"""Periods that noise would rarely make: our default.

A signal is called periodic where noise of the kinds that I/O has (`iosig.studies.periods.noise`: white, red, phases at
random times) would look so periodic with a stated probability at most. Three tests share that probability: one of the
distances of phases (`controlled_pauses`), which needs no fixed rhythm, the same of running means (`controlled_means`),
for few cycles in noise, and one of the lines of the spectrum (`controlled_lines`), which needs no phases that stand
out; means and lines of few cycles are judged together, too. What is judged is the time from the first activity to the
last, so silence before and after changes nothing; then ever shorter windows of it are judged, and their number is
accounted for. Where a period is found it is told where it starts and stops (`controlled_extents`).

Everything is counted in samples and in multiples of the signal's own highest rate: units change nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace

import numpy as np
import numpy.typing as npt

from iosig.transforms.arrays import Bools, Ints, Reals, offsets_of, rows_of
from iosig.transforms.periods import (
    controlled_extents,
    controlled_few,
    controlled_frequencies,
    controlled_lines,
    controlled_means,
    controlled_pauses,
    controlled_profiles,
)
from iosig.transforms.periods.answers import Candidates, Claims, Detections
from iosig.transforms.periods.controlled_extents import Extents
from iosig.transforms.periods.controlled_lines import Centred
from iosig.transforms.periods.controlled_pauses import LEAST_PHASE_RATIO, Activity, Phases
from iosig.transforms.periods.controlled_pieces import Packed, Pieces, Signals
from iosig.transforms.periods.controlled_profiles import Refined
from iosig.transforms.periods.even_signals import EvenSignals

Floats = npt.NDArray[np.float32]

#: two tests share the probability of a false alarm
_TESTS = 2
#: phases are regular if chance makes them so with this probability
_SURE_OF_PHASES = 0.01
#: probabilities are as good as what is asked for if their logarithms are so much higher
_MARGIN = 1e-3
#: two periods are the same if one is a multiple of the other but for so much
_SAME_RATIO = 0.1
#: phases of so many samples are samples
_SHORT_PHASE = 2.0
#: pauses in a phase are shorter than this share of a cycle
_GAP_IN_CYCLE = 0.25
#: the coefficient of variation of distances between phases whose lines can still be seen
_UNEVEN = 0.1
#: cycles by which phases and lines may come apart, and yet be in step
_DRIFT = 0.15
#: phases are those that make the lines if there are so many of them to each cycle
_SAME_CYCLES = 0.8
#: samples of which each has its own wave; so many neighbours are turned as a whole
_TURNED = 64
#: samples of whole signals that are at hand at a time: many, so that there are enough of one length among them
_HELD_SAMPLES = 1 << 21


#: a signal with fewer known samples is too short
_LEAST_SAMPLES = 16
#: of the samples from the first activity to the last; if more were not measured there are too many gaps
_LARGEST_MISSING_RATIO = 0.5
#: windows are not shorter
_LEAST_WINDOW_SAMPLES = 32
#: the share of the false alarms that is spent on signals as a whole, if there are windows
WHOLE_WEIGHT = 0.8
#: Windows are searched until a period is so sure where so large a share of the bytes is. Of several with a period that
#: with more bytes is taken, and the surer one if it has at least so large a share of the other's.
_SURE_PROBABILITY, _LARGE_RATIO = 1e-6, 0.5
#: a cycle has at least so large a share of all bytes, or the longest window that share of so many of them
_LEAST_BYTES_RATIO, _MOST_CYCLES = 1e-6, 1e5
#: of the signal with its mean cycle, where lines are judged; what repeats may be there for sure, and next to nothing
_LEAST_CORRELATION = 0.1


@dataclass(frozen=True, slots=True)
class ControlledParams:
    """How sure a period must be, and where it is looked for (all ours).

    false_alarm_probability: of a signal without a period being called periodic. window_levels: how often windows are
    halved in the search for a period that holds only for a while; 0 judges signals as a whole only.
    """

    false_alarm_probability: float = 0.01
    window_levels: int = 6


_PARAMS = ControlledParams()


@dataclass(frozen=True, slots=True)
class _Findings:
    """What was found in pieces (k).

    pieces: where. log_probability: of a false alarm, all tests counted. is_comb: which test it is. merged_gap, period,
    variation: of phases. size, level: of phases of means (`controlled_means`); 0 and NaN where they are of samples.
    cycles_per_sample, line_count: of a comb, roughly. lines_log_probability: of it alone; 0 where none was judged.
    typical_length, effective_counts: as in `regularity.Phases`.
    """

    row: Ints
    first: Ints
    last: Ints
    log_probability: Reals
    is_comb: Bools
    merged_gap: Ints
    period: Reals
    variation: Reals
    size: Ints
    level: Reals
    cycles_per_sample: Reals
    line_count: Ints
    lines_log_probability: Reals
    typical_length: Reals
    effective_counts: Reals

    @classmethod
    def of(cls, pieces: Pieces) -> _Findings:
        """Return nothing for so many pieces."""
        count = len(pieces.row)
        reals = [np.full(count, np.nan) for _ in range(6)]
        ints = [np.zeros(count, dtype=np.int64) for _ in range(3)]
        return cls(
            pieces.row.copy(), pieces.first.copy(), pieces.last.copy(), np.zeros(count),
            np.zeros(count, dtype=np.bool_), ints[0], reals[0], reals[1], ints[1], reals[2],
            reals[3], ints[2], np.zeros(count), reals[4], reals[5],
        )  # fmt: skip

    @property
    def pieces(self) -> Pieces:
        """Where it was found."""
        return Pieces(self.row, self.first, self.last)

    @property
    def is_few(self) -> Bools:
        """Whether the comb is of few cycles (k)."""
        found: Bools = self.cycles_per_sample * self.pieces.lengths <= controlled_lines.FEW_CYCLES
        return found

    def put(self, at: Ints, other: _Findings) -> None:
        """Put other findings in some places."""
        for column in fields(self):
            getattr(self, column.name)[at] = getattr(other, column.name)


@dataclass(frozen=True, slots=True)
class _Answers:
    """Answers for all signals (n), filled part after part; times are in samples from the signal's start on."""

    outcome: npt.NDArray[np.str_]
    log_probability: Reals
    cycles_per_sample: Reals
    confidence: Reals
    first: Reals
    last: Reals
    amplitude: Reals
    phase: Reals
    error: Reals
    bytes_ratio: Reals

    @classmethod
    def of(cls, signals: EvenSignals) -> _Answers:
        """Return none yet."""
        count = signals.signal_count
        none = [np.full(count, np.nan) for _ in range(9)]
        return cls(np.full(count, "aperiodic", dtype="<U16"), *none)

    def detections(self, signals: EvenSignals) -> Detections:
        """Return the answers in seconds."""
        hz, is_periodic = signals.sampling_hz, self.outcome == "periodic"
        frequency = self.cycles_per_sample * hz
        offsets = offsets_of(is_periodic)
        return Detections(
            self.outcome,
            frequency,
            self.confidence,
            signals.started_s + self.first / hz,
            signals.started_s + self.last / hz,
            np.exp(self.log_probability),
            Candidates(
                frequency[is_periodic],
                self.confidence[is_periodic],
                self.amplitude[is_periodic],
                self.phase[is_periodic],
                offsets,
            ),
            Claims(self.error / hz, self.bytes_ratio),
        )


def detect(signals: EvenSignals, params: ControlledParams = _PARAMS) -> Detections:
    """Return each signal's period, if noise would rarely make it.

    The false-alarm probability is given for all that was judged. The confidence is how regular the signal is, from 0
    to 1: where it was the distances of phases, 1 less their coefficient of variation; where it was lines, the
    correlation of the signal with its mean cycle. The window is where the period starts and stops; that of an
    aperiodic signal is from its first activity to its last, that of any other the whole.
    """
    answers = _Answers.of(signals)
    for place, part in signals.chunks(_HELD_SAMPLES):
        _answer(part, params, answers, place.start)
    return answers.detections(signals)


def _answer(part: EvenSignals, params: ControlledParams, answers: _Answers, offset: int) -> None:
    """Judge some signals, and put the answers in their places."""
    signals = Signals.of(part)
    outcome = _outcomes(signals)
    judged = np.flatnonzero(outcome == "aperiodic")
    place = slice(offset, offset + part.signal_count)
    answers.outcome[place] = outcome
    answers.first[place] = signals.spans.first
    answers.last[place] = np.where(signals.spans.lengths > 0, signals.spans.last, part.sample_count)
    best = _best(signals, rows_of(signals.spans, judged), params)
    answers.log_probability[offset + judged] = best.log_probability
    claimed = rows_of(best, best.log_probability <= np.log(params.false_alarm_probability))
    for some, size in _alike(claimed):
        if some.is_comb[0]:
            told = _cycles(signals, some, size)
        else:
            told = _distances_of_means(signals, some) if some.size[0] else _distances(signals, some)
        ratio = _bytes_ratio(signals, some.row, told[1])
        judged_ratio = np.minimum(
            ratio, signals.volumes(some.pieces) / signals.volumes(rows_of(signals.spans, some.row))
        )
        is_much = told[1].regularity >= _LEAST_CORRELATION
        is_much &= judged_ratio >= _LEAST_BYTES_RATIO * np.clip(told[1].cycles, 1.0, _MOST_CYCLES)
        own = some.row[is_much], told[0][is_much], rows_of(told[1], is_much)
        answers.bytes_ratio[offset + own[0]] = ratio[is_much]
        refined = controlled_profiles.refined(signals, *own, are_lines=bool(some.is_comb[0]))
        _tell(part, own, refined, answers, offset)


def _alike(claimed: _Findings) -> Iterator[tuple[_Findings, int]]:
    """Yield findings of one test that are transformed alike, and the size."""
    kind = np.where(claimed.is_comb, -1, claimed.size)
    for each in np.unique(kind):
        found = rows_of(claimed, kind == each)
        for places, size in found.pieces.grouped():
            yield rows_of(found, places), size


def _outcomes(signals: Signals) -> npt.NDArray[np.str_]:
    """Return why signals cannot be judged (n); aperiodic for those that can."""
    rows = signals.spans.row
    known = signals.known_counts(Pieces(rows, np.zeros_like(rows), np.full_like(rows, signals.sample_count)))
    active = signals.spans.lengths
    missing = active - signals.known_counts(signals.spans)
    outcome = np.full(len(rows), "aperiodic", dtype="<U16")
    outcome[missing > _LARGEST_MISSING_RATIO * active] = "too_many_gaps"
    outcome[known < _LEAST_SAMPLES] = "too_short"
    outcome[active == 0] = "no_io"
    outcome[known == 0] = "no_data"
    return outcome


# ---- the whole and its windows


def _best(signals: Signals, spans: Pieces, params: ControlledParams) -> _Findings:
    """Return what was found in each span as a whole, or in its best window."""
    best = _judged(signals, spans, np.zeros(len(spans.row)), params)
    if params.window_levels:
        for log_p in (best.log_probability, best.lines_log_probability):
            log_p[:] = np.minimum(log_p - np.log(WHOLE_WEIGHT), 0.0)
    _raise_few(best)
    whole = rows_of(best, np.arange(len(best.row)))
    bytes_of_all = signals.volumes(spans)
    for level in range(1, params.window_levels + 1):
        is_settled = (best.log_probability <= np.log(_SURE_PROBABILITY)) & (
            signals.volumes(best.pieces) >= _LARGE_RATIO * bytes_of_all
        )
        sought = np.flatnonzero(~is_settled & (spans.lengths >= _LEAST_WINDOW_SAMPLES << level))
        if not len(sought):
            break
        _search(signals, spans, level, sought, params, best)
    _judge_means(signals, spans, whole, params, best)
    return best


def _raise_few(whole: _Findings) -> None:
    """Count lines of few cycles in signals as a whole as they were measured; regular phases stay the answer."""
    whole.lines_log_probability[(whole.lines_log_probability < 0.0) & whole.is_few] += controlled_few.LOG_RAISE
    is_free = whole.is_comb | (whole.log_probability > np.log(_SURE_OF_PHASES / WHOLE_WEIGHT))
    is_better = is_free & (whole.lines_log_probability < whole.log_probability)
    whole.is_comb[is_better] = True
    whole.log_probability[is_better] = whole.lines_log_probability[is_better]


def _judge_means(signals: Signals, spans: Pieces, whole: _Findings, params: ControlledParams, best: _Findings) -> None:
    """Put phases of means in the places of what is not claimed yet: means tell less of what samples show.

    But of few cycles they tell more than lines do, which know of no phases. Where neither is sure, both together may
    be; then lines tell, unless they are in step with means.
    """
    needed = float(np.log(params.false_alarm_probability))
    is_claimed = best.log_probability <= needed
    at = np.flatnonzero(~is_claimed | (best.is_comb & best.is_few))
    lines, is_claimed = rows_of(whole, at), is_claimed[at]
    lines.put(np.flatnonzero(is_claimed), rows_of(best, at[is_claimed]))
    means, cycles = _means(signals, rows_of(spans, at), lines, needed)
    few = np.where(lines.is_few, lines.lines_log_probability, 0.0)
    both = controlled_few.both(few, means.log_probability, cycles)
    is_sure = means.log_probability <= needed
    # what is claimed by lines may be a multiple
    is_told = is_sure | np.where(is_claimed, both.is_multiple, both.is_step)
    log_p = np.minimum(both.log_probability, means.log_probability)
    log_p = np.where(is_claimed & ~is_sure, lines.log_probability, log_p)
    is_better = np.where(is_claimed, is_told, log_p < best.log_probability[at])
    is_means = is_told | (both.log_probability >= means.log_probability)
    lines.is_comb[:] = True
    lines.put(np.flatnonzero(is_means), rows_of(means, is_means))
    lines.log_probability[:] = log_p
    best.put(at[is_better], rows_of(lines, is_better))


def _means(signals: Signals, spans: Pieces, lines: _Findings, needed: float) -> tuple[_Findings, Reals]:
    """Return what means tell of spans (k), and how many cycles of their lines it takes for one of means.

    Where lines may do so together with them, means that are more probable than what is needed are told, too.
    """
    found = _Findings.of(spans)
    is_worth = lines.is_few & (lines.lines_log_probability <= controlled_few.WORTH)
    for rows, asked in ((~is_worth, needed), (is_worth, max(needed, controlled_few.WORTH))):
        told = controlled_means.judged(signals, rows_of(spans, rows), asked)
        for column in fields(told):
            getattr(found, column.name)[rows] = getattr(told, column.name)
    pace = spans.lengths / np.maximum(signals.packed.pieces(spans).lengths, 1)
    return found, found.period * found.size * pace * lines.cycles_per_sample


def _search(
    signals: Signals, spans: Pieces, level: int, sought: Ints, params: ControlledParams, best: _Findings
) -> None:
    """Judge all windows of one level of some spans; put those that are better in the places of the best so far."""
    windows, owner = spans.windows(level, sought)
    trials = params.window_levels * len(owner) / len(sought) / (1.0 - WHOLE_WEIGHT)
    windows = signals.trimmed(windows)
    known = signals.known_counts(windows)
    at = np.flatnonzero(
        (windows.lengths >= _LEAST_SAMPLES)
        & (known >= (1.0 - _LARGEST_MISSING_RATIO) * windows.lengths)
        & (signals.volumes(windows) >= _LEAST_BYTES_RATIO * signals.volumes(spans)[owner])
    )
    # what is neither sure nor surer than the best so far is not asked for
    least = np.maximum(best.log_probability[owner[at]], np.log(params.false_alarm_probability)) - np.log(trials)
    found = _judged(signals, rows_of(windows, at), least, params)
    found.log_probability[:] = np.minimum(found.log_probability + np.log(trials), 0.0)
    # what is as probable as anything is not better
    told = np.flatnonzero(found.log_probability < 0)
    found, at = rows_of(found, told), at[told]
    top = _preferred(found.log_probability, signals.volumes(found.pieces), owner[at], params)
    owner = owner[at][top]
    old, new = rows_of(best, owner), rows_of(found, top)
    two = np.concatenate([old.log_probability, new.log_probability])
    volume = np.concatenate([signals.volumes(old.pieces), signals.volumes(new.pieces)])
    winner = _preferred(two, volume, np.concatenate([owner, owner]), params)
    is_new = winner >= len(owner)
    at = winner[is_new] - len(owner)
    best.put(owner[at], rows_of(new, at))


def _preferred(log_probability: Reals, volume: Reals, owner: Ints, params: ControlledParams) -> Ints:
    """Return the place of each owner's best window, in order of owners.

    Where there is a period, the surest of those that carry nearly as many bytes as any; else the least improbable.
    """
    is_sure = log_probability <= np.log(params.false_alarm_probability)
    largest = np.zeros(int(owner.max(initial=-1)) + 1)
    np.maximum.at(largest, owner[is_sure], volume[is_sure])
    is_large = is_sure & (volume >= _LARGE_RATIO * largest[owner])
    # what is sure anyway is not made better by being surer still
    surety = np.maximum(log_probability, np.log(_SURE_PROBABILITY))
    order = np.lexsort((log_probability, -volume, surety, ~is_large, owner))
    return order[np.flatnonzero(np.diff(owner[order], prepend=-1))]


# ---- both tests


def _judged(signals: Signals, pieces: Pieces, least: Reals, params: ControlledParams) -> _Findings:
    """Judge pieces (k). Where the logarithm of the probability is above the least that is asked for it may be 0."""
    found = _Findings.of(pieces)
    needed = least - np.log(_TESTS) + _MARGIN
    for places, width in signals.packed.pieces(pieces).alike():
        found.put(places, _judge_phases(signals, rows_of(pieces, places), width, needed[places]))
    lines = np.flatnonzero(controlled_lines.is_fit(pieces.lengths, found.typical_length, found.effective_counts))
    for places, size in rows_of(pieces, lines).grouped():
        _judge_lines(signals, found, lines[places], size, params)
    for log_p in (found.log_probability, found.lines_log_probability):
        log_p[:] = np.minimum(log_p + np.log(_TESTS), 0.0)
    return found


def _judge_phases(signals: Signals, pieces: Pieces, width: int, needed: Reals) -> _Findings:
    """Judge the phases of pieces that are no longer than so many samples."""
    found = _Findings.of(pieces)
    packed = signals.packed
    inner = packed.pieces(pieces)
    rates, _ = packed.signals.cut(inner, width)
    active = controlled_pauses.activity(rates, rates.sum(axis=1) / np.maximum(inner.lengths, 1))
    is_flicker = controlled_pauses.is_flicker(active, inner.lengths)
    phases = _phases(packed, inner, active.chosen(~is_flicker))
    # of few kinds, as there are tables of it; and what lines are compared with is told
    asked = float(max(np.ceil(needed.max()), np.log(_SURE_OF_PHASES / _TESTS)))
    regular = controlled_pauses.regularity(phases, asked, stretches=packed.stretches(pieces))
    # time goes on where nothing was measured
    pace = pieces.lengths / np.maximum(inner.lengths, 1)
    found.log_probability[:] = regular.log_probability
    found.merged_gap[:] = np.rint(regular.merged_gap * pace)
    found.period[:], found.variation[:] = regular.period, regular.variation
    found.typical_length[:], found.effective_counts[:] = _sizes(rates, active, phases, is_flicker)
    return found


def _judge_lines(signals: Signals, found: _Findings, at: Ints, size: int, params: ControlledParams) -> None:
    """Put lines where they are less probable than what was found of phases."""
    phases = rows_of(found, at)
    centred = _centred(signals, phases, size)
    ratios = controlled_lines.over_noise(controlled_lines.powers(centred.values, size))
    comb = controlled_lines.best_combs(
        centred, ratios, max(np.log(params.false_alarm_probability), controlled_few.WORTH)
    )
    is_better = comb.log_probability < phases.log_probability
    found.is_comb[at] = is_better & ~_is_of_phases(phases, comb.cycles_per_sample)
    found.log_probability[at] = np.minimum(comb.log_probability, phases.log_probability)
    found.cycles_per_sample[at], found.line_count[at] = comb.cycles_per_sample, comb.line_count
    found.lines_log_probability[at] = comb.log_probability


def _centred(signals: Signals, found: _Findings, size: int) -> Centred:
    """Return pieces that are transformed alike, white as far as one step of prediction makes them so."""
    rates, is_known = signals.cut(found.pieces, size)
    values, lengths = controlled_lines.whitened(rates, is_known), found.pieces.lengths
    counts = controlled_lines.line_counts(values, lengths, found.effective_counts)
    # samples of longer phases depend on one another; what is regular is no flicker, nor is a part of what has phases
    is_flicker = (found.typical_length <= _SHORT_PHASE) & ~_are_sure(found)
    is_flicker &= lengths == signals.spans.lengths[found.row]
    return Centred(values, lengths, found.typical_length, np.where(is_flicker, counts, found.effective_counts))


def _are_sure(phases: _Findings) -> Bools:
    """Return whether phases are regular by themselves (k)."""
    found: Bools = phases.log_probability + np.log(_TESTS) <= np.log(_SURE_OF_PHASES)
    return found


def _is_of_phases(phases: _Findings, cycles_per_sample: Reals) -> Bools:
    """Return whether lines are those of phases that are regular, but not to a sample (k).

    The lines of phases that come sooner and later tell how often most of them come, not how often they come on the
    whole; and they may be those of what is in a phase. Where phases are missing, distances say less than lines.
    """
    cycles = phases.period * cycles_per_sample
    whole = np.maximum(np.round(cycles), 1.0)
    found: Bools = (
        _are_sure(phases) & (np.abs(cycles - whole) <= _SAME_RATIO) & (phases.variation * phases.period > 1.0)
    )
    return found


def _phases(packed: Packed, pieces: Pieces, active: Activity) -> Phases:
    """Return the phases of packed pieces (k), in samples from their starts on."""
    edges = active.edges_from(packed.signals.places(pieces.row, pieces.first))
    found = active.carrying(packed.signals.volumes_of(edges))
    if packed.place is None:
        return found
    row, sample = pieces.row[found.owner], found.first + pieces.first[found.owner]
    return replace(found, is_torn=packed.is_torn(row, sample), started=packed.place[row, sample])


def _sizes(rates: Floats, active: Activity, phases: Phases, is_flicker: Bools) -> tuple[Reals, Reals]:
    """Return how long a typical phase is and how many carry the bytes (k); of what flickers, from its samples."""
    typical, effective = phases.typical_length, phases.effective_counts
    rows = np.flatnonzero(is_flicker)
    if len(rows):
        own = rates if len(rows) == len(rates) else rates[rows]
        total, square = own.sum(axis=1, dtype=np.float64), np.einsum("ij,ij->i", own, own)
        typical[rows] = 1.0
        # every other sample is above the mean at best
        effective[rows] = np.minimum(total**2 / square / 2.0, active.counts[rows])
    return typical, effective


# ---- what is told of those that are periodic


def _distances(signals: Signals, found: _Findings) -> tuple[Reals, Extents]:
    """Return frequency and extents where distances of phases were judged."""
    phases = _like_those_of(signals, found, LEAST_PHASE_RATIO)
    told = controlled_extents.of_phases(phases, found.merged_gap, found.period, found.variation)
    return 1.0 / told.period, told


def _distances_of_means(signals: Signals, found: _Findings) -> tuple[Reals, Extents]:
    """Return frequency and extents where distances of phases of means were judged, all of one size."""
    told = (found.merged_gap, found.period, found.variation)
    extent = controlled_means.extents(signals, found.pieces, int(found.size[0]), found.level, told)
    return 1.0 / extent.period, extent


def _like_those_of(signals: Signals, found: _Findings, ratio: float) -> Phases:
    """Return the phases of whole signals that are above the mean of the piece, and as large as those in it."""
    threshold = signals.volumes(found.pieces) / np.maximum(signals.known_counts(found.pieces), 1)
    is_known = None if signals.is_known is None else signals.is_known[found.row]
    phases = controlled_pauses.phases(signals.rates[found.row], threshold, is_known)
    owner = phases.owner
    # what goes on beyond the piece counts as far as it is in it
    first, last = np.maximum(phases.first, found.first[owner]), np.minimum(phases.last, found.last[owner])
    inside = np.where(first < last, signals.volumes(Pieces(found.row[owner], first, np.maximum(first, last))), 0.0)
    judged = replace(phases, volume=inside)
    return phases.chosen(phases.volume >= ratio * judged.typical_volume[owner])


def _cycles(signals: Signals, found: _Findings, size: int) -> tuple[Reals, Extents]:
    """Return frequency and extents where lines were judged.

    If phases come about as often, but not in step with the lines, these are those of a part of them only: then the
    distances of phases tell both.
    """
    comb = controlled_lines.Combs(found.log_probability, found.cycles_per_sample, found.line_count)
    frequency = controlled_frequencies.refined(_centred(signals, found, size), comb)
    own = signals.chosen(found.row)
    told = controlled_extents.of_cycles(own.rates, own.is_known, frequency, own.spans, found.pieces)
    phases = _like_those_of(signals, found, LEAST_PHASE_RATIO)
    gap = np.floor(_GAP_IN_CYCLE / frequency).astype(np.int64)
    even = controlled_extents.of_phases(phases, gap, 1.0 / frequency, np.full(len(gap), _UNEVEN), is_mean=False)
    drift = np.abs(even.period * frequency - 1.0) * told.cycles
    is_even = (even.cycles >= _SAME_CYCLES * told.cycles) & (
        (drift > _DRIFT) | (_SAME_CYCLES * even.cycles > told.cycles)
    )
    return np.where(is_even, 1.0 / even.period, frequency), told.replaced(is_even, even)


def _bytes_ratio(signals: Signals, row: Ints, extent: Extents) -> Reals:
    """Return which share of the bytes of signals is where their periods are (k)."""
    edges = [np.clip(np.round(edge), 0, signals.sample_count) for edge in (extent.first, extent.last)]
    first, last = (np.nan_to_num(edge).astype(np.int64) for edge in edges)
    inside = signals.volumes(Pieces(row, first, np.maximum(first, last)))
    return np.minimum(inside / signals.volumes(rows_of(signals.spans, row)), 1.0)


def _tell(part: EvenSignals, told: tuple[Ints, Reals, Extents], best: Refined, answers: _Answers, offset: int) -> None:
    """Put what is known of some periodic signals in their places."""
    rows, _, extent = told
    at = offset + rows
    answers.outcome[at] = "periodic"
    answers.cycles_per_sample[at], answers.error[at] = best.frequency, best.period_error
    answers.first[at], answers.last[at] = extent.first, extent.last
    answers.confidence[at] = extent.regularity
    answers.amplitude[at], answers.phase[at] = _cosine(part.chosen(rows), best.frequency, extent)


def _cosine(part: EvenSignals, frequency: Reals, extent: Extents) -> tuple[Reals, Reals]:
    """Return amplitude and phase of the cosine at a frequency (n) that is nearest to signals where it holds."""
    place = np.arange(part.sample_count)
    is_in = (place >= extent.first[:, None] - 0.5) & (place < extent.last[:, None] - 0.5) & part.is_known
    count = np.maximum(is_in.sum(axis=1), 1)
    rates = np.zeros((part.signal_count, -(-part.sample_count // _TURNED), _TURNED))
    own = rates.reshape(part.signal_count, rates.shape[1] * _TURNED)[:, : part.sample_count]
    np.copyto(own, part.bytes_per_s, where=is_in)
    # a wave among them is that of the first one, turned: so there are few cosines
    firsts = _waves((_TURNED * np.arange(rates.shape[1]) + 0.5) * frequency[:, None])
    steps = _waves(np.arange(_TURNED) * frequency[:, None])
    with np.errstate(over="ignore", invalid="ignore"):
        own -= (own / count[:, None]).sum(axis=1, keepdims=True)
        own *= is_in / count[:, None]
        sums = np.matmul(rates, np.stack([steps.real, steps.imag], axis=-1))
        wave = np.einsum("ij,ij->i", sums[..., 0] + 1j * sums[..., 1], firsts)
        return 2.0 * np.abs(wave), np.arctan2(-wave.imag, wave.real)


def _waves(turns: Reals) -> npt.NDArray[np.complex128]:
    """Return what stands for so many turns on the unit circle."""
    found: npt.NDArray[np.complex128] = np.exp(2j * np.pi * (turns - np.floor(turns)))
    return found
