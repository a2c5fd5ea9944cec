"""Detect periods that a memoryless null model rarely produces: the default method (`null_tested`).

A signal is called periodic if noise of the kinds found in I/O rarely looks as periodic: white noise, red noise, and
phases at random times (`iosig.studies.periods.noise`). Three tests share the permitted false-alarm probability. The
test of gaps between phases (`gaps`) needs no fixed rhythm. The test of gaps between phases of running means
(`smoothed`) is for few cycles in noise. The test of lines in the spectrum (`comb`) needs no distinct phases. For few
cycles the last two are also combined (`few_cycles`).

Only the time from the first to the last activity is tested, so silence around it has no effect. Then ever shorter
windows are tested, with a correction for their number. A significant result is a claim: a period, and the interval in
which it was found. Finally, the extent of each claimed period is located (`extent`).

All quantities are in samples or in multiples of the signal's maximum rate, so units have no effect.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace

import numpy as np
import numpy.typing as npt

from iosig.transforms.arrays import Bools, Ints, Reals, offsets_of, rows_of
from iosig.transforms.periods.interface.detections import Candidates, Detections, PeriodDetails
from iosig.transforms.periods.interface.even_signals import EvenSignals
from iosig.transforms.periods.null_model import (
    comb,
    extent,
    few_cycles,
    fundamental,
    gaps,
    refinement,
    smoothed,
)
from iosig.transforms.periods.null_model.comb import WhitenedSignals
from iosig.transforms.periods.null_model.extent import Extents
from iosig.transforms.periods.null_model.gaps import GAP_TEST
from iosig.transforms.periods.null_model.intervals import Intervals, PackedSignals, ScaledSignals
from iosig.transforms.periods.null_model.params import SEARCH, NullModelParams
from iosig.transforms.periods.null_model.phases import Activity, Phases, find_activity, find_phases
from iosig.transforms.periods.null_model.refinement import RefinedPeriods

Floats = npt.NDArray[np.float32]


#: samples per block; all samples of a block are rotated by one phasor
_BLOCK_SAMPLES = 64
#: samples of whole signals per chunk: large enough to form batches of equal length
_CHUNK_SAMPLES = 1 << 21


_DEFAULT_PARAMS = NullModelParams()


@dataclass(frozen=True, slots=True)
class _Findings:
    """Test results of intervals (k).

    Attributes
    ----------
    row, first, last : (k,)
        Tested interval: signal, first sample, and the sample after the last.
    log_p : (k,)
        Log p-value, corrected for all tests.
    is_comb : (k,)
        Whether the comb test decided.
    max_merged_gap, period, cv : (k,)
        Result of the gap test, as in `gaps.GapRegularity`.
    step_samples, threshold_sigmas : (k,)
        Step size and threshold of running means, as in `smoothed.SmoothedFindings`; 0 and NaN for phases of samples.
    cycles_per_sample, harmonic_count : (k,)
        Frequency and number of lines of the comb, before refinement.
    comb_log_p : (k,)
        Log p-value of the comb alone; 0 if it was not tested.
    typical_length, effective_counts : (k,)
        Typical length and effective number of phases, as in `phases.Phases`.
    """

    row: Ints
    first: Ints
    last: Ints
    log_p: Reals
    is_comb: Bools
    max_merged_gap: Ints
    period: Reals
    cv: Reals
    step_samples: Ints
    threshold_sigmas: Reals
    cycles_per_sample: Reals
    harmonic_count: Ints
    comb_log_p: Reals
    typical_length: Reals
    effective_counts: Reals

    @classmethod
    def empty(cls, intervals: Intervals) -> _Findings:
        """Create findings for intervals that have not been tested: zeros and NaN."""
        count = len(intervals.row)
        reals = [np.full(count, np.nan) for _ in range(6)]
        ints = [np.zeros(count, dtype=np.int64) for _ in range(3)]
        return cls(
            intervals.row.copy(), intervals.first.copy(), intervals.last.copy(), np.zeros(count),
            np.zeros(count, dtype=np.bool_), ints[0], reals[0], reals[1], ints[1], reals[2],
            reals[3], ints[2], np.zeros(count), reals[4], reals[5],
        )  # fmt: skip

    @property
    def intervals(self) -> Intervals:
        """The tested intervals of the signals (k)."""
        return Intervals(self.row, self.first, self.last)

    @property
    def has_few_cycles(self) -> Bools:
        """Whether the comb has few cycles (k)."""
        has_few: Bools = self.cycles_per_sample * self.intervals.lengths <= comb.COMB.few_cycles
        return has_few

    def update(self, rows: Ints, other: _Findings) -> None:
        """Replace some rows, in place."""
        for column in fields(self):
            getattr(self, column.name)[rows] = getattr(other, column.name)


@dataclass(frozen=True, slots=True)
class _Results:
    """Results for all signals (n), filled chunk by chunk; times are in samples from the start of the signal."""

    outcome: npt.NDArray[np.str_]
    log_p: Reals
    cycles_per_sample: Reals
    confidence: Reals
    first: Reals
    last: Reals
    amplitude: Reals
    phase: Reals
    error: Reals
    bytes_ratio: Reals

    @classmethod
    def empty(cls, signals: EvenSignals) -> _Results:
        """Return results without any claim."""
        count = signals.signal_count
        columns = [np.full(count, np.nan) for _ in range(9)]
        return cls(np.full(count, "aperiodic", dtype="<U16"), *columns)

    def to_detections(self, signals: EvenSignals) -> Detections:
        """Convert the results to seconds."""
        hz, is_periodic = signals.sampling_hz, self.outcome == "periodic"
        frequency = self.cycles_per_sample * hz
        offsets = offsets_of(is_periodic)
        return Detections(
            self.outcome,
            frequency,
            self.confidence,
            signals.start_s + self.first / hz,
            signals.start_s + self.last / hz,
            np.exp(self.log_p),
            Candidates(
                frequency[is_periodic],
                self.confidence[is_periodic],
                self.amplitude[is_periodic],
                self.phase[is_periodic],
                offsets,
            ),
            PeriodDetails(self.error / hz, self.bytes_ratio),
        )


def detect(signals: EvenSignals, params: NullModelParams = _DEFAULT_PARAMS) -> Detections:
    """Detect each signal's period.

    Parameters
    ----------
    signals : EvenSignals
        n signals of one length.
    params : NullModelParams, optional

    Returns
    -------
    Detections
        `false_alarm_probability` is given for all tested signals. `confidence` is the regularity of the signal, from 0
        to 1: 1 minus the coefficient of variation of the onset intervals, or, if the comb test decided, the correlation
        with the mean cycle. The window is the extent of the period. In an aperiodic signal, it is the time from the
        first to the last activity; in an untested one, the whole signal.
    """
    results = _Results.empty(signals)
    for chunk, part in signals.iter_chunks(_CHUNK_SAMPLES):
        _detect_chunk(part, params, results, chunk.start)
    return results.to_detections(signals)


def _detect_chunk(part: EvenSignals, params: NullModelParams, results: _Results, offset: int) -> None:
    """Detect the periods of a chunk of signals, and store the results from row `offset` on."""
    signals = ScaledSignals.from_signals(part)
    outcome = _classify_untestable(signals)
    testable = np.flatnonzero(outcome == "aperiodic")
    chunk = slice(offset, offset + part.signal_count)
    results.outcome[chunk] = outcome
    results.first[chunk] = signals.spans.first
    results.last[chunk] = np.where(signals.spans.lengths > 0, signals.spans.last, part.sample_count)
    best = _find_best(signals, rows_of(signals.spans, testable), params)
    results.log_p[offset + testable] = best.log_p
    claims = rows_of(best, best.log_p <= np.log(params.false_alarm_probability))
    for group, size in _group_claims(claims):
        if group.is_comb[0]:
            located = _locate_comb_claims(signals, group, size)
        elif group.step_samples[0]:
            located = _locate_running_mean_claims(signals, group)
        else:
            located = _locate_gap_claims(signals, group)
        volume_ratio = _compute_volume_ratio(signals, group.row, located[1])
        tested_ratio = np.minimum(
            volume_ratio, signals.sum_volumes(group.intervals) / signals.sum_volumes(rows_of(signals.spans, group.row))
        )
        is_substantial = located[1].regularity >= SEARCH.min_regularity
        is_substantial &= tested_ratio >= SEARCH.min_cycle_volume_ratio * np.clip(
            located[1].cycles, 1.0, SEARCH.max_counted_cycles
        )
        accepted = group.row[is_substantial], located[0][is_substantial], rows_of(located[1], is_substantial)
        results.bytes_ratio[offset + accepted[0]] = volume_ratio[is_substantial]
        refined = refinement.refine_periods(signals, *accepted, is_comb=bool(group.is_comb[0]))
        _store_claims(part, accepted, refined, results, offset)


def _group_claims(claims: _Findings) -> Iterator[tuple[_Findings, int]]:
    """Yield groups of claims with the same test and FFT size, and the size."""
    group = np.where(claims.is_comb, -1, claims.step_samples)
    for number in np.unique(group):
        members = rows_of(claims, group == number)
        for positions, size in members.intervals.group_by_fft_size():
            yield rows_of(members, positions), size


def _classify_untestable(signals: ScaledSignals) -> npt.NDArray[np.str_]:
    """Outcomes (n): the reason if a signal cannot be tested, otherwise `aperiodic`."""
    rows = signals.spans.row
    known_counts = signals.count_measurements(
        Intervals(rows, np.zeros_like(rows), np.full_like(rows, signals.sample_count))
    )
    active_counts = signals.spans.lengths
    missing_counts = active_counts - signals.count_measurements(signals.spans)
    outcome = np.full(len(rows), "aperiodic", dtype="<U16")
    outcome[missing_counts > SEARCH.max_missing_ratio * active_counts] = "too_many_gaps"
    outcome[known_counts < SEARCH.min_samples] = "too_short"
    outcome[active_counts == 0] = "no_io"
    outcome[known_counts == 0] = "no_data"
    return outcome


# ---- the whole and its windows


def _find_best(signals: ScaledSignals, spans: Intervals, params: NullModelParams) -> _Findings:
    """Find the best result for each span: that of the whole span, or of its best window."""
    best = _test_intervals(signals, spans, np.zeros(len(spans.row)), params)
    if params.window_levels:
        for log_p in (best.log_p, best.comb_log_p):
            log_p[:] = np.minimum(log_p - np.log(SEARCH.whole_weight), 0.0)
    _correct_few_cycles(best)
    whole = rows_of(best, np.arange(len(best.row)))
    total_volumes = signals.sum_volumes(spans)
    for level in range(1, params.window_levels + 1):
        is_settled = (best.log_p <= np.log(SEARCH.settled_probability)) & (
            signals.sum_volumes(best.intervals) >= SEARCH.settled_volume_ratio * total_volumes
        )
        unsettled = np.flatnonzero(~is_settled & (spans.lengths >= SEARCH.min_window_samples << level))
        if not len(unsettled):
            break
        _search_windows(signals, spans, level, unsettled, params, best)
    _add_running_means(signals, spans, whole, params, best)
    return best


def _correct_few_cycles(findings: _Findings) -> None:
    """Correct the p-values of combs with few cycles in whole signals; regular phases keep precedence."""
    findings.comb_log_p[(findings.comb_log_p < 0.0) & findings.has_few_cycles] += (
        few_cycles.JOINT_TEST.comb_log_p_correction
    )
    is_free = findings.is_comb | (findings.log_p > np.log(SEARCH.max_gap_p / SEARCH.whole_weight))
    is_better = is_free & (findings.comb_log_p < findings.log_p)
    findings.is_comb[is_better] = True
    findings.log_p[is_better] = findings.comb_log_p[is_better]


def _add_running_means(
    signals: ScaledSignals, spans: Intervals, whole: _Findings, params: NullModelParams, best: _Findings
) -> None:
    """Add results of running means for spans without a claim so far, or with only a comb of few cycles.

    Running means show less detail than samples, but for few cycles their test has more power than that of combs. If
    neither test is significant, both together may be; then the comb determines the period, unless the two are
    commensurate.
    """
    max_log_p = float(np.log(params.false_alarm_probability))
    is_claimed = best.log_p <= max_log_p
    rows = np.flatnonzero(~is_claimed | (best.is_comb & best.has_few_cycles))
    candidates, is_claimed = rows_of(whole, rows), is_claimed[rows]
    candidates.update(np.flatnonzero(is_claimed), rows_of(best, rows[is_claimed]))
    smoothed_findings, cycle_ratio = _test_running_means(signals, rows_of(spans, rows), candidates, max_log_p)
    comb_log_p = np.where(candidates.has_few_cycles, candidates.comb_log_p, 0.0)
    joint = few_cycles.combine_evidence(comb_log_p, smoothed_findings.log_p, cycle_ratio)
    is_significant = smoothed_findings.log_p <= max_log_p
    # the frequency of a claimed comb may be a multiple of the true one
    use_smoothed_period = is_significant | np.where(is_claimed, joint.is_multiple, joint.is_commensurate)
    log_p = np.minimum(joint.log_p, smoothed_findings.log_p)
    log_p = np.where(is_claimed & ~is_significant, candidates.log_p, log_p)
    is_better = np.where(is_claimed, use_smoothed_period, log_p < best.log_p[rows])
    use_smoothed = use_smoothed_period | (joint.log_p >= smoothed_findings.log_p)
    candidates.is_comb[:] = True
    candidates.update(np.flatnonzero(use_smoothed), rows_of(smoothed_findings, use_smoothed))
    candidates.log_p[:] = log_p
    best.update(rows[is_better], rows_of(candidates, is_better))


def _test_running_means(
    signals: ScaledSignals, spans: Intervals, candidates: _Findings, max_log_p: float
) -> tuple[_Findings, Reals]:
    """Test running means of spans (k); also return their period in cycles of the comb.

    If a joint test is possible, results up to its limit are reported.
    """
    findings = _Findings.empty(spans)
    is_joint = candidates.has_few_cycles & (candidates.comb_log_p <= few_cycles.JOINT_TEST.max_log_p)
    for mask, limit in ((~is_joint, max_log_p), (is_joint, max(max_log_p, few_cycles.JOINT_TEST.max_log_p))):
        smoothed_findings = smoothed.assess_running_means(signals, rows_of(spans, mask), limit)
        for column in fields(smoothed_findings):
            getattr(findings, column.name)[mask] = getattr(smoothed_findings, column.name)
    stretch = spans.lengths / np.maximum(signals.packed.to_packed(spans).lengths, 1)
    return findings, findings.period * findings.step_samples * stretch * candidates.cycles_per_sample


def _search_windows(
    signals: ScaledSignals, spans: Intervals, level: int, selected: Ints, params: NullModelParams, best: _Findings
) -> None:
    """Test all windows of one level, and update the best results of spans with a better window."""
    windows, owner = spans.split_windows(level, selected)
    trials = params.window_levels * len(owner) / len(selected) / (1.0 - SEARCH.whole_weight)
    windows = signals.trim_idle(windows)
    known_counts = signals.count_measurements(windows)
    rows = np.flatnonzero(
        (windows.lengths >= SEARCH.min_samples)
        & (known_counts >= (1.0 - SEARCH.max_missing_ratio) * windows.lengths)
        & (signals.sum_volumes(windows) >= SEARCH.min_cycle_volume_ratio * signals.sum_volumes(spans)[owner])
    )
    # windows must be significant and better than the best so far
    max_log_p = np.maximum(best.log_p[owner[rows]], np.log(params.false_alarm_probability)) - np.log(trials)
    findings = _test_intervals(signals, rows_of(windows, rows), max_log_p, params)
    findings.log_p[:] = np.minimum(findings.log_p + np.log(trials), 0.0)
    # a log p-value of 0 is no result
    significant = np.flatnonzero(findings.log_p < 0)
    findings, rows = rows_of(findings, significant), rows[significant]
    best_windows = _select_best_windows(findings.log_p, signals.sum_volumes(findings.intervals), owner[rows], params)
    owner = owner[rows][best_windows]
    old, new = rows_of(best, owner), rows_of(findings, best_windows)
    log_p = np.concatenate([old.log_p, new.log_p])
    volume = np.concatenate([signals.sum_volumes(old.intervals), signals.sum_volumes(new.intervals)])
    winner = _select_best_windows(log_p, volume, np.concatenate([owner, owner]), params)
    is_new = winner >= len(owner)
    rows = winner[is_new] - len(owner)
    best.update(owner[rows], rows_of(new, rows))


def _select_best_windows(log_p: Reals, volume: Reals, owner: Ints, params: NullModelParams) -> Ints:
    """Select the best window of each owner; return positions, sorted by owner.

    Among significant windows, it is the most significant one with a volume close to the largest. Otherwise it is the
    window with the smallest p-value.
    """
    is_significant = log_p <= np.log(params.false_alarm_probability)
    largest = np.zeros(int(owner.max(initial=-1)) + 1)
    np.maximum.at(largest, owner[is_significant], volume[is_significant])
    is_large = is_significant & (volume >= SEARCH.settled_volume_ratio * largest[owner])
    # below the settled probability, only the volume decides
    capped_log_p = np.maximum(log_p, np.log(SEARCH.settled_probability))
    order = np.lexsort((log_p, -volume, capped_log_p, ~is_large, owner))
    return order[np.flatnonzero(np.diff(owner[order], prepend=-1))]


# ---- both tests


def _test_intervals(
    signals: ScaledSignals, intervals: Intervals, max_log_p: Reals, params: NullModelParams
) -> _Findings:
    """Apply the gap test and the comb test to intervals (k); log p-values above `max_log_p` may be reported as 0."""
    findings = _Findings.empty(intervals)
    limit = max_log_p - np.log(SEARCH.test_count) + SEARCH.log_p_margin
    for positions, width in signals.packed.to_packed(intervals).group_by_width():
        findings.update(positions, _test_gaps(signals, rows_of(intervals, positions), width, limit[positions]))
    comb_rows = np.flatnonzero(
        comb.is_resolvable(intervals.lengths, findings.typical_length, findings.effective_counts)
    )
    for positions, size in rows_of(intervals, comb_rows).group_by_fft_size():
        _test_comb(signals, findings, comb_rows[positions], size, params)
    for log_p in (findings.log_p, findings.comb_log_p):
        log_p[:] = np.minimum(log_p + np.log(SEARCH.test_count), 0.0)
    return findings


def _test_gaps(signals: ScaledSignals, intervals: Intervals, width: int, max_log_p: Reals) -> _Findings:
    """Apply the gap test to intervals with up to `width` samples."""
    findings = _Findings.empty(intervals)
    packed = signals.packed
    packed_intervals = packed.to_packed(intervals)
    rates, _ = packed.signals.extract(packed_intervals, width)
    active = find_activity(rates, rates.sum(axis=1) / np.maximum(packed_intervals.lengths, 1))
    is_crowded = gaps.has_too_many_phases(active, packed_intervals.lengths)
    phases = _find_phases(packed, packed_intervals, active.select(~is_crowded))
    # rounded, since limits are cached by value; the comb test needs gap results up to `max_gap_p` for comparison
    limit = float(max(np.ceil(max_log_p.max()), np.log(SEARCH.max_gap_p / SEARCH.test_count)))
    regularity = gaps.assess_regularity(phases, limit, run_lengths=packed.run_lengths(intervals))
    # convert packed to original samples
    stretch = intervals.lengths / np.maximum(packed_intervals.lengths, 1)
    findings.log_p[:] = regularity.log_p
    findings.max_merged_gap[:] = np.rint(regularity.max_merged_gap * stretch)
    findings.period[:], findings.cv[:] = regularity.period, regularity.cv
    findings.typical_length[:], findings.effective_counts[:] = _measure_phases(rates, active, phases, is_crowded)
    return findings


def _test_comb(signals: ScaledSignals, findings: _Findings, rows: Ints, size: int, params: NullModelParams) -> None:
    """Apply the comb test, and store combs that are more significant than the gaps."""
    gap_findings = rows_of(findings, rows)
    whitened = _prewhiten(signals, gap_findings, size)
    ratios = comb.normalize_by_noise_floor(comb.compute_power(whitened.values, size))
    combs = comb.find_best_combs(
        whitened, ratios, max(np.log(params.false_alarm_probability), few_cycles.JOINT_TEST.max_log_p)
    )
    is_better = combs.log_p < gap_findings.log_p
    findings.is_comb[rows] = is_better & ~_stems_from_phases(gap_findings, combs.cycles_per_sample)
    findings.log_p[rows] = np.minimum(combs.log_p, gap_findings.log_p)
    findings.cycles_per_sample[rows], findings.harmonic_count[rows] = combs.cycles_per_sample, combs.harmonic_count
    findings.comb_log_p[rows] = combs.log_p


def _prewhiten(signals: ScaledSignals, findings: _Findings, size: int) -> WhitenedSignals:
    """Prewhiten the samples of intervals with the same FFT size."""
    rates, is_known = signals.extract(findings.intervals, size)
    values, lengths = comb.prewhiten(rates, is_known), findings.intervals.lengths
    counts = comb.estimate_effective_counts(values, lengths, findings.effective_counts)
    # noise requires uncorrelated samples, i.e. short phases, no regular phases, and a whole signal
    is_noise = (findings.typical_length <= SEARCH.max_short_phase_samples) & ~_has_regular_phases(findings)
    is_noise &= lengths == signals.spans.lengths[findings.row]
    return WhitenedSignals(
        values, lengths, findings.typical_length, np.where(is_noise, counts, findings.effective_counts)
    )


def _has_regular_phases(findings: _Findings) -> Bools:
    """Whether phases alone are significantly regular (k)."""
    is_regular: Bools = findings.log_p + np.log(SEARCH.test_count) <= np.log(SEARCH.max_gap_p)
    return is_regular


def _stems_from_phases(findings: _Findings, cycles_per_sample: Reals) -> Bools:
    """Whether a comb comes from phases that are regular, but not exactly to a sample (k).

    The comb of phases with jitter shows the most frequent interval rather than the mean; it may also come from the
    structure within a phase. But if phases are missing, the comb is more reliable than onset intervals.
    """
    cycles = findings.period * cycles_per_sample
    multiple = np.maximum(np.round(cycles), 1.0)
    is_explained: Bools = (
        _has_regular_phases(findings)
        & (np.abs(cycles - multiple) <= SEARCH.max_period_error)
        & (findings.cv * findings.period > 1.0)
    )
    return is_explained


def _find_phases(packed: PackedSignals, intervals: Intervals, active: Activity) -> Phases:
    """Find the phases of packed intervals (k), in samples from their starts."""
    edges = active.edge_positions(packed.signals.flat_positions(intervals.row, intervals.first))
    phases = active.with_volumes(packed.signals.sum_between_edges(edges))
    if packed.position is None:
        return phases
    row, sample = intervals.row[phases.owner], phases.first + intervals.first[phases.owner]
    return replace(phases, is_onset_censored=packed.is_after_gap(row, sample), onset=packed.position[row, sample])


def _measure_phases(rates: Floats, active: Activity, phases: Phases, is_crowded: Bools) -> tuple[Reals, Reals]:
    """Typical length and effective number of phases (k); estimated from the samples if phases are not resolved."""
    typical, effective = phases.typical_length, phases.effective_counts
    rows = np.flatnonzero(is_crowded)
    if len(rows):
        flickering = rates if len(rows) == len(rates) else rates[rows]
        total, squares = flickering.sum(axis=1, dtype=np.float64), np.einsum("ij,ij->i", flickering, flickering)
        typical[rows] = 1.0
        # no more than every other sample is above the mean
        effective[rows] = np.minimum(total**2 / squares / 2.0, active.counts[rows])
    return typical, effective


# ---- extent of claims


def _locate_gap_claims(signals: ScaledSignals, findings: _Findings) -> tuple[Reals, Extents]:
    """Determine frequency and extent of claims of the gap test."""
    phases = _find_similar_phases(signals, findings, GAP_TEST.min_phase_ratio)
    located = extent.locate_by_phases(phases, findings.max_merged_gap, findings.period, findings.cv)
    return 1.0 / located.period, located


def _locate_running_mean_claims(signals: ScaledSignals, findings: _Findings) -> tuple[Reals, Extents]:
    """Determine frequency and extent of claims of running means with the same step size."""
    regularity = (findings.max_merged_gap, findings.period, findings.cv)
    located = smoothed.locate_extents(
        signals, findings.intervals, int(findings.step_samples[0]), findings.threshold_sigmas, regularity
    )
    return 1.0 / located.period, located


def _find_similar_phases(signals: ScaledSignals, findings: _Findings, ratio: float) -> Phases:
    """Find the phases of whole signals, above the interval's mean rate, that are as large as those in the interval."""
    threshold = signals.sum_volumes(findings.intervals) / np.maximum(signals.count_measurements(findings.intervals), 1)
    is_known = None if signals.is_known is None else signals.is_known[findings.row]
    phases = find_phases(signals.rates[findings.row], threshold, is_known)
    owner = phases.owner
    # phases are clipped to the interval
    first, last = np.maximum(phases.first, findings.first[owner]), np.minimum(phases.last, findings.last[owner])
    inside = np.where(
        first < last, signals.sum_volumes(Intervals(findings.row[owner], first, np.maximum(first, last))), 0.0
    )
    tested = replace(phases, volume=inside)
    return phases.select(phases.volume >= ratio * tested.typical_volume[owner])


def _locate_comb_claims(signals: ScaledSignals, findings: _Findings, size: int) -> tuple[Reals, Extents]:
    """Determine frequency and extent of claims of the comb test.

    If phases are about as frequent as the comb's cycles, but drift out of step, the comb belongs to only some of the
    phases. Then the onset intervals determine frequency and extent.
    """
    combs = comb.Combs(findings.log_p, findings.cycles_per_sample, findings.harmonic_count)
    frequency = fundamental.refine_fundamental(_prewhiten(signals, findings, size), combs)
    selected = signals.select(findings.row)
    by_cycles = extent.locate_by_cycles(
        selected.rates, selected.is_known, frequency, selected.spans, findings.intervals
    )
    phases = _find_similar_phases(signals, findings, GAP_TEST.min_phase_ratio)
    max_merged_gap = np.floor(SEARCH.max_gap_ratio / frequency).astype(np.int64)
    by_phases = extent.locate_by_phases(
        phases, max_merged_gap, 1.0 / frequency, np.full(len(max_merged_gap), SEARCH.max_comb_cv), is_mean=False
    )
    drift_cycles = np.abs(by_phases.period * frequency - 1.0) * by_cycles.cycles
    use_phases = (by_phases.cycles >= SEARCH.min_cycle_ratio * by_cycles.cycles) & (
        (drift_cycles > SEARCH.max_drift_cycles) | (SEARCH.min_cycle_ratio * by_phases.cycles > by_cycles.cycles)
    )
    return np.where(use_phases, 1.0 / by_phases.period, frequency), by_cycles.replace_where(use_phases, by_phases)


def _compute_volume_ratio(signals: ScaledSignals, row: Ints, located: Extents) -> Reals:
    """Volume within the extent of the period, as a fraction of the signal's volume (k)."""
    edges = [np.clip(np.round(edge), 0, signals.sample_count) for edge in (located.first, located.last)]
    first, last = (np.nan_to_num(edge).astype(np.int64) for edge in edges)
    inside = signals.sum_volumes(Intervals(row, first, np.maximum(first, last)))
    return np.minimum(inside / signals.sum_volumes(rows_of(signals.spans, row)), 1.0)


def _store_claims(
    part: EvenSignals, claims: tuple[Ints, Reals, Extents], refined: RefinedPeriods, results: _Results, offset: int
) -> None:
    """Store the results of periodic signals."""
    rows, _, located = claims
    positions = offset + rows
    results.outcome[positions] = "periodic"
    results.cycles_per_sample[positions], results.error[positions] = refined.frequency, refined.period_error
    results.first[positions], results.last[positions] = located.first, located.last
    results.confidence[positions] = located.regularity
    results.amplitude[positions], results.phase[positions] = _fit_cosine(part.select(rows), refined.frequency, located)


def _fit_cosine(part: EvenSignals, frequency: Reals, located: Extents) -> tuple[Reals, Reals]:
    """Amplitude and phase of the best-fitting cosine at each frequency (n), within its extent."""
    position = np.arange(part.sample_count)
    is_inside = (position >= located.first[:, None] - 0.5) & (position < located.last[:, None] - 0.5) & part.is_known
    count = np.maximum(is_inside.sum(axis=1), 1)
    rates = np.zeros((part.signal_count, -(-part.sample_count // _BLOCK_SAMPLES), _BLOCK_SAMPLES))
    samples = rates.reshape(part.signal_count, rates.shape[1] * _BLOCK_SAMPLES)[:, : part.sample_count]
    np.copyto(samples, part.bytes_per_s, where=is_inside)
    # each phasor in a block is the block's first phasor, rotated, so few exponentials are needed
    block_phasors = _phasors((_BLOCK_SAMPLES * np.arange(rates.shape[1]) + 0.5) * frequency[:, None])
    inner_phasors = _phasors(np.arange(_BLOCK_SAMPLES) * frequency[:, None])
    with np.errstate(over="ignore", invalid="ignore"):
        samples -= (samples / count[:, None]).sum(axis=1, keepdims=True)
        samples *= is_inside / count[:, None]
        sums = np.matmul(rates, np.stack([inner_phasors.real, inner_phasors.imag], axis=-1))
        coefficient = np.einsum("ij,ij->i", sums[..., 0] + 1j * sums[..., 1], block_phasors)
        return 2.0 * np.abs(coefficient), np.arctan2(-coefficient.imag, coefficient.real)


def _phasors(turns: Reals) -> npt.NDArray[np.complex128]:
    """Compute unit phasors exp(2 pi i turns)."""
    phasors: npt.NDArray[np.complex128] = np.exp(2j * np.pi * (turns - np.floor(turns)))
    return phasors
