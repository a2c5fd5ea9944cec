"""Similarity measures: analytic cases, undefined values, naive implementations, and matching of bursts."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import assume, given, settings, strategies as st

from iosig.transforms.signatures import similarity
from iosig.transforms.signatures.bursts import Bursts, detect_bursts
from iosig.transforms.signatures.signature import Signature
from iosig.transforms.signatures.similarity import (
    compare_signatures,
    correlation,
    count_burst_errors,
    cross_correlation,
    match_bursts,
    match_bursts_in_order,
    volume_ratio,
)
from iosig.transforms.synthetic.site import signature
from iosig.transforms.synthetic.workload import APPLICATIONS
from tests.budget import examples
from tests.naive.signatures import similarity as naive

pytestmark = pytest.mark.filterwarnings("error")

Reals = npt.NDArray[np.float64]
curves = st.lists(st.one_of(st.just(0.0), st.floats(1e-3, 100.0)), max_size=24)


def make_curve(*values: float) -> Reals:
    return np.array(values, dtype=np.float64)


def bursts(*spans: tuple[float, float, float]) -> Bursts:
    """Make bursts of (start, peak, end)."""
    started, peaked, ended = (
        (make_curve(*column) for column in zip(*spans, strict=True))
        if spans
        else (make_curve(), make_curve(), make_curve())
    )
    return Bursts(started, peaked, ended, ended - started, np.full(len(started), np.nan))


# ---- curves


def test_cross_correlation_ignores_scale_and_shift() -> None:
    truth = signature(APPLICATIONS[0], "write")
    late = np.concatenate([np.zeros(30), 7e-3 * truth])
    assert cross_correlation(truth, truth) == pytest.approx(1.0, abs=1e-12)
    assert correlation(truth, truth) == pytest.approx(1.0, abs=1e-12)
    assert cross_correlation(late, truth) == pytest.approx(1.0, abs=1e-12)
    assert correlation(late, truth) < 0.6
    assert volume_ratio(late, truth) == pytest.approx(7e-3)


def test_similarity_matches_hand_computed_values() -> None:
    # Products at lags -1, 0, 1: 2, 1, 2 over sqrt(5 * 2); the shorter curve is padded with zeros.
    assert cross_correlation(make_curve(1, 2), make_curve(1, 0, 1)) == pytest.approx(2 / np.sqrt(10))
    assert correlation(make_curve(1, 0), make_curve(1, 0, 1)) == pytest.approx(0.5)
    assert correlation(make_curve(1, 0), make_curve(0, 1)) == pytest.approx(-1.0)
    assert volume_ratio(make_curve(1, 2), make_curve(1, 0, 1)) == pytest.approx(1.5)


@settings(max_examples=examples(60), deadline=None)
@given(curves, curves)
def test_correlations_match_naive_implementation(result: list[float], truth: list[float]) -> None:
    # A spread below the rounding error counts as constant.
    for one in (result, truth):
        assume(len(one) > 1)
        assume(max(one) - min(one) > 1e-6 * max(one))
    ours = (
        cross_correlation(make_curve(*result), make_curve(*truth)),
        correlation(make_curve(*result), make_curve(*truth)),
    )
    assert ours[0] == pytest.approx(naive.cross_correlation(result, truth), abs=1e-9)
    assert ours[1] == pytest.approx(naive.correlation(result, truth), abs=1e-7)
    assert ours[0] <= 1.0
    assert abs(ours[1]) <= 1.0
    assert ours[0] == pytest.approx(cross_correlation(make_curve(*truth), make_curve(*result)), abs=1e-12)


@pytest.mark.parametrize(
    "none",
    [
        make_curve(),
        make_curve(3.0),
        make_curve(0, 0, 0),
        make_curve(2, 2, 2),
        make_curve(1, np.nan, 2),
        make_curve(1, np.inf),
    ],
)
def test_constant_or_empty_curves_are_nan(none: Reals) -> None:
    some = make_curve(1, 2, 1)
    for one, other in ((none, some), (some, none), (none, none)):
        assert np.isnan(cross_correlation(one, other))
        assert np.isnan(correlation(one, other))


def test_volume_ratio_of_empty_curves_is_nan() -> None:
    assert np.isnan(volume_ratio(make_curve(), make_curve(1)))
    assert np.isnan(volume_ratio(make_curve(1), make_curve()))
    assert np.isnan(volume_ratio(make_curve(1), make_curve(0, 0)))
    assert np.isnan(volume_ratio(make_curve(np.nan), make_curve(1)))
    assert np.isnan(volume_ratio(make_curve(1), make_curve(1, np.inf)))
    assert volume_ratio(make_curve(0, 0), make_curve(1)) == 0.0


@pytest.mark.parametrize("scale", [5e-324, 1e-200, 1e200, 8e307])
def test_measures_are_scale_invariant_at_any_magnitude(scale: float) -> None:
    curve = make_curve(0, 1, 2, 0, 2, 0)
    assert cross_correlation(curve * scale, curve) == pytest.approx(1.0)
    assert correlation(curve * scale, curve) == pytest.approx(1.0)
    assert volume_ratio(curve * scale, curve * scale) == pytest.approx(1.0)


def test_volume_ratio_of_huge_and_tiny_rates_saturates() -> None:
    assert volume_ratio(make_curve(1e308, 1e308), make_curve(1e-308)) == np.inf
    assert volume_ratio(make_curve(1e-308), make_curve(1e308, 1e308)) == 0.0


# ---- bursts


def test_bursts_are_matched_one_to_one() -> None:
    truth = bursts((10, 12, 20), (40, 42, 50), (70, 72, 80))
    assert count_burst_errors(truth, truth) == (0, 0)
    assert count_burst_errors(bursts(), truth) == (3, 0)
    assert count_burst_errors(truth, bursts()) == (0, 3)
    assert count_burst_errors(bursts(), bursts()) == (0, 0)
    # A burst that covers two bursts matches one burst.
    assert count_burst_errors(bursts((10, 12, 80)), truth) == (2, 0)
    # Of two bursts within one burst, one is false.
    assert count_burst_errors(bursts((10, 12, 14), (15, 17, 19)), bursts((10, 12, 20))) == (0, 1)


def test_bursts_with_close_peaks_match_without_overlap(monkeypatch: pytest.MonkeyPatch) -> None:
    truth = bursts((10, 12, 14))
    near, far = bursts((14, 17, 20)), bursts((14, 17.01, 20))
    assert count_burst_errors(near, truth) == (0, 0)
    assert count_burst_errors(far, truth) == (1, 1)
    # Adjacent bursts do not overlap.
    monkeypatch.setattr(similarity, "TOLERANCE_S", 0.0)
    assert count_burst_errors(near, truth) == (1, 1)


def test_matching_maximizes_pairs_then_minimizes_distance() -> None:
    # The first burst overlaps both, the second burst only the first: both are matched.
    result, truth = bursts((9, 31, 32), (33, 34, 35)), bursts((10, 30, 31), (31.5, 38, 39))
    assert match_bursts(result, truth) == (pytest.approx([0, 1]), pytest.approx([0, 1]))
    # Of two candidates the closer one matches.
    in_found, in_truth = match_bursts(bursts((0, 4, 9), (9, 10, 20)), bursts((5, 11, 12)))
    assert (in_found.tolist(), in_truth.tolist()) == ([1], [0])


spans = st.lists(st.tuples(st.integers(1, 8), st.integers(1, 6), st.integers(0, 10)), max_size=5)


def placed(steps: list[tuple[int, int, int]]) -> list[tuple[float, float, float]]:
    """Make consecutive spans of (gap, length, peak in tenths of the length)."""
    result, at = [], 0.0
    for gap, length, tenths in steps:
        started = at + gap
        at = started + length
        result.append((started, started + length * tenths / 10, at))
    return result


@settings(max_examples=examples(60), deadline=None)
@given(spans, spans, st.floats(0, 6))
def test_matching_equals_exhaustive_search(
    result: list[tuple[int, int, int]], truth: list[tuple[int, int, int]], tolerance_s: float
) -> None:
    ours, theirs = placed(result), placed(truth)
    count, distance = naive.best_matching(ours, theirs, tolerance_s)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(similarity, "TOLERANCE_S", tolerance_s)
        in_found, in_truth = match_bursts(bursts(*ours), bursts(*theirs))
        errors = count_burst_errors(bursts(*ours), bursts(*theirs))
    assert len(in_found) == count
    total = sum(abs(ours[i][1] - theirs[j][1]) for i, j in zip(in_found, in_truth, strict=True))
    assert total == pytest.approx(distance, abs=1e-6)
    assert errors == (len(truth) - count, len(result) - count)


# ---- drift


# ---- bursts in order


def at(starts: Reals) -> Bursts:
    return bursts(*((start, start + 2.0, start + 4.0) for start in starts.tolist()))


def matched(result: Reals, truth: Reals, slowdown_ratio: float) -> list[tuple[int, int]]:
    ours, theirs = match_bursts_in_order(at(result), at(truth), slowdown_ratio)
    return list(zip(ours.tolist(), theirs.tolist(), strict=True))


EVERY = np.arange(8) * 490.0 + 310.0


def test_constant_slowdown_loses_no_burst() -> None:
    """A rhythm of 494 s instead of 490 s matches completely; by overlap, only one burst of eight would."""
    result = EVERY * 494.0 / 490.0
    assert matched(result, EVERY, 0.01) == [(n, n) for n in range(8)]
    assert len(match_bursts(at(result), at(EVERY))[0]) < 8


def test_slowdown_beyond_the_ratio_does_not_match() -> None:
    assert len(matched(EVERY * 1.05, EVERY, 0.01)) == 0
    assert len(matched(EVERY * 1.05, EVERY, 0.05)) == 8


def test_without_slowdown_only_the_tolerance_applies() -> None:
    assert matched(EVERY + similarity.TOLERANCE_S, EVERY, 0.0) == [(n, n) for n in range(8)]
    assert matched(EVERY + similarity.TOLERANCE_S + 0.1, EVERY, 0.0) == []


def test_missing_burst_costs_only_itself() -> None:
    result = np.delete(EVERY, 3) * 1.008
    assert matched(result, EVERY, 0.01) == [(n, n if n < 3 else n + 1) for n in range(7)]


def test_false_burst_costs_only_itself() -> None:
    result = np.insert(EVERY * 1.008, 4, 2000.0)
    assert matched(result, EVERY, 0.01) == [(n if n < 4 else n + 1, n) for n in range(8)]


def test_dense_bursts_of_another_rhythm_do_not_match() -> None:
    truth = np.arange(60) * 30.0 + 15.0
    assert len(matched(truth * 1.02, truth, 0.02)) == 60
    assert len(matched(np.arange(54) * 33.0 + 15.0, truth, 0.02)) <= 30


def test_empty_bursts_have_no_pairs() -> None:
    nothing = np.zeros(0)
    assert matched(nothing, EVERY, 0.01) == matched(EVERY, nothing, 0.01) == []


def test_matching_preserves_order() -> None:
    """Of two bursts in swapped order only one matches."""
    assert matched(make_curve(100.0, 104.0), make_curve(104.0, 100.0), 0.0) in ([(0, 0)], [(0, 1)], [(1, 0)], [(1, 1)])


def test_change_lists_added_and_removed_bursts() -> None:
    truth = signature(APPLICATIONS[4], "write")
    old = Signature.from_curve(truth, detect_bursts(truth))
    changed = truth.copy()
    changed[410:420] = 0.0
    changed[2000:2030] = 2e9
    new = Signature.from_curve(changed, detect_bursts(changed))
    result = compare_signatures(old, new)
    assert result.removed.start_s.tolist() == [412.0]
    assert result.added.start_s.tolist() == [2000.0]
    assert result.added.volume_bytes.tolist() == [6e10]
    assert 0.8 < result.correlation < result.cross_correlation < 1.0
    assert result.volume_ratio == pytest.approx((truth.sum() - 6e9 + 6e10) / truth.sum())
    same = compare_signatures(old, old)
    assert (len(same.removed), len(same.added), same.volume_ratio) == (0, 0, 1.0)


def test_change_from_or_to_missing_signature_has_nan_measures() -> None:
    truth = signature(APPLICATIONS[4], "write")
    one, none = Signature.from_curve(truth, detect_bursts(truth)), Signature.missing("too_few_samples")
    for old, new, removed, added in ((one, none, 7, 0), (none, one, 0, 7), (none, none, 0, 0)):
        result = compare_signatures(old, new)
        assert (len(result.removed), len(result.added)) == (removed, added)
        assert np.isnan([result.correlation, result.cross_correlation, result.volume_ratio]).all()
