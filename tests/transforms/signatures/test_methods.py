"""All methods give valid results for any input, are invariant to order and scale, and treat sets independently."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from iosig.transforms.signatures import outliers
from iosig.transforms.signatures.expected_correlation import COMPARABLE_OUTCOMES, find_missing_bursts_in_set
from iosig.transforms.signatures.iosi import IosiParams
from iosig.transforms.signatures.methods import (
    METHODS,
    MethodSignatures,
    SignatureParams,
    extract_signatures,
    select_methods,
)
from iosig.transforms.signatures.outliers import select_typical_runs
from iosig.transforms.signatures.sample_sets import SampleSet, SampleSets
from iosig.transforms.signatures.signature import Signature
from tests.budget import examples
from tests.transforms.run_sets import Burst, find_faults, make_sample_set, reorder_runs, simulate_polls, true_rates

pytestmark = pytest.mark.filterwarnings("error")

NAN, INF = float("nan"), float("inf")
BOUNDED = settings(max_examples=examples(15), deadline=None)
#: Methods that do not process runs sequentially.
ORDERLESS = ("elastic", "robust", "time_normalized", "mean", "median", "quantile")
BURSTS: list[Burst] = [(10.0 + 50 * place, 26.0 + 50 * place, 1e9) for place in range(4)]


def extract_all(one: SampleSet, methods: Sequence[str] = METHODS) -> dict[str, Signature]:
    """Extract the signature of one set by each method, and check that all are valid."""
    result = {
        method_result.method: method_result.signatures[0]
        for method_result in extract_signatures(SampleSets.concatenate([one]), None, methods)
    }
    assert {
        method: find_faults(method_result) for method, method_result in result.items() if find_faults(method_result)
    } == {}
    return result


def simulate_noisy_runs(seed: int, runs: int = 7, duration_s: float = 200.0) -> SampleSet:
    """Simulate runs of the same bursts with delays and interference."""
    rng = np.random.default_rng(seed)
    phases = rng.uniform(0, 2, runs)
    rows, durations = [], []
    for phase_s in phases:
        late = np.cumsum(rng.choice([0.0, 0.0, 3.0], len(BURSTS)))
        own = [(begin + by, end + by, rate) for (begin, end, rate), by in zip(BURSTS, late, strict=True)]
        places = rng.uniform(0, duration_s - 20, 2)
        others = [(place, place + rng.uniform(3, 20), rng.uniform(2e8, 2e9)) for place in places]
        durations.append(duration_s + late[-1])
        rows.append(simulate_polls([*own, *others], durations[-1], 2.0, phase_s) + 1e6)
    return make_sample_set(rows, 2.0, (-phases).tolist(), durations)


# ---- arbitrary runs

#: Not the smallest denormal, because half of it is 0.
EXTREMES = st.sampled_from([0.0, 0.0, 1.0, 1e9, 3e9, NAN, INF, 2.0**-1060, 1e-310, 1e300, -0.0])


@st.composite
def sets(draw: st.DrawFn) -> SampleSet:
    """Draw sets of arbitrary runs: empty, with long gaps, of any scale, constant."""
    count = draw(st.integers(0, 8))
    seed = draw(st.integers(0, 10_000))
    rng = np.random.default_rng(seed)
    interval_s = draw(st.sampled_from([0.5, 1.0, 2.0, 5.0, 60.0]))
    length = draw(st.integers(0, 60))
    rows: list[list[float]] = []
    for _ in range(count):
        kind = draw(st.sampled_from(["any", "busy", "bursts", "constant", "gaps", "short"]))
        steps = max(0, length + int(rng.integers(-2, 3))) if kind != "short" else draw(st.integers(0, 3))
        if kind == "any":
            rows.append(draw(st.lists(EXTREMES, min_size=steps, max_size=steps)))
        elif kind == "constant":
            rows.append([draw(EXTREMES)] * steps)
        else:
            rates = rng.exponential(1e9, steps) * (rng.random(steps) < 0.3 if kind != "busy" else 1.0)
            if kind in ("bursts", "gaps"):
                rates = 1e9 * (np.arange(steps) % 12 < 4) + 1e6
            if kind == "gaps":
                rates[rng.random(steps) < 0.2] = NAN
            rows.append(rates.tolist())
    started = [-draw(st.sampled_from([0.0, 0.3, 0.99])) * interval_s for _ in rows]
    durations = [max(0.0, len(row) * interval_s + begun) for row, begun in zip(rows, started, strict=True)]
    return make_sample_set(rows, interval_s, started, durations)


@settings(max_examples=examples(80), deadline=None)
@given(sets())
def test_results_are_valid_for_any_input(one: SampleSet) -> None:
    result = extract_all(one)
    assert list(result) == list(METHODS)
    if one.run_count < SignatureParams().min_run_count:
        assert {method_result.outcome for method_result in result.values()} == {"too_few_samples"}


@settings(max_examples=examples(40), deadline=None)
@given(sets(), st.integers(0, 1000))
def test_order_of_runs_matters_only_for_documented_methods(one: SampleSet, seed: int) -> None:
    result = extract_all(one, ORDERLESS)
    other = extract_all(reorder_runs(one, np.random.default_rng(seed).permutation(one.run_count).tolist()), ORDERLESS)
    for method in ORDERLESS:
        assert other[method].outcome == result[method].outcome
        np.testing.assert_allclose(other[method].bytes_per_s, result[method].bytes_per_s, rtol=1e-9)
    np.testing.assert_array_equal(other["robust"].bytes_per_s, result["robust"].bytes_per_s)


def test_almost_empty_bursts_are_valid() -> None:
    rows = [[1e9, 2e7, 2e6], [0.0, 0.0], [], [0.0, 0.0, 1.0], [1e-310, 1e-310]]
    one = make_sample_set([np.array(row) for row in rows], 0.5, [0.0] * 5, [1.5, 1.0, 0.0, 1.5, 1.0])
    assert all(np.isfinite(result.bytes_per_s).all() for result in extract_all(one).values())


@BOUNDED
@given(st.integers(0, 10_000), st.integers(-40, 40))
def test_methods_are_scale_invariant(seed: int, exponent: int) -> None:
    one = simulate_noisy_runs(seed)
    rows = [np.ldexp(rates, exponent) for rates in one.rates]
    higher = extract_all(make_sample_set(rows, 2.0, one.start_s.tolist(), one.duration_s.tolist()))
    for method, result in extract_all(one).items():
        expected = np.ldexp(result.bytes_per_s, exponent)
        assert higher[method].outcome == result.outcome, method
        np.testing.assert_allclose(higher[method].bytes_per_s, expected, rtol=1e-9, err_msg=method)
        np.testing.assert_array_equal(higher[method].bursts.start_s, result.bursts.start_s, err_msg=method)
        volume = np.ldexp(result.bursts.volume_bytes, exponent)
        np.testing.assert_allclose(higher[method].bursts.volume_bytes, volume, rtol=1e-9, err_msg=method)
        background = higher[method].background_bytes_per_s
        np.testing.assert_allclose(background, np.ldexp(result.background_bytes_per_s, exponent), rtol=1e-9)


# ---- sets


def test_sets_are_independent() -> None:
    stopped = simulate_noisy_runs(3)
    rows = [*stopped.rates, stopped.rates[0][:30]]
    with_one_stopped = make_sample_set(rows, 2.0, [*stopped.start_s, 0.0], [*stopped.duration_s, 60.0])
    ones = [
        simulate_noisy_runs(1),
        make_sample_set([]),
        simulate_noisy_runs(2, runs=4),
        with_one_stopped,
        make_sample_set([np.zeros(100)] * 6),
    ]
    together = extract_signatures(SampleSets.concatenate(ones))
    for method_result in together:
        assert len(method_result.signatures) == len(ones)
        assert method_result.is_outlier.shape == (sum(one.run_count for one in ones),)
    for place, one in enumerate(ones):
        for method_result, alone in zip(together, extract_signatures(SampleSets.concatenate([one])), strict=True):
            assert method_result.signatures[place].outcome == alone.signatures[0].outcome
            np.testing.assert_array_equal(method_result.signatures[place].bytes_per_s, alone.signatures[0].bytes_per_s)
    outcomes = {
        method_result.method: [result.outcome for result in method_result.signatures] for method_result in together
    }
    assert outcomes["robust"] == ["extracted", "too_few_samples", "too_few_samples", "extracted", "no_io"]


def test_results_are_in_the_order_of_methods() -> None:
    asked = ("mean", "robust", "mean")
    assert (
        tuple(
            method_result.method
            for method_result in extract_signatures(SampleSets.concatenate([simulate_noisy_runs(1)]), None, asked)
        )
        == asked
    )
    with pytest.raises(KeyError):
        extract_signatures(SampleSets.concatenate([simulate_noisy_runs(1)]), None, ("no_method",))


def test_method_with_the_highest_expected_correlation_is_selected() -> None:
    def method_result(method: str, *trusts: float) -> MethodSignatures:
        return MethodSignatures(method, [], np.zeros(0, dtype=np.bool_), np.array(trusts), np.full(len(trusts), np.nan))

    result = [
        method_result("iosi", 0.9, NAN, 0.3, NAN),
        method_result("robust", 0.5, 0.8, NAN, NAN),
        method_result("elastic", 0.495, 0.4, NAN, NAN),
    ]
    # The first preferred method has a bonus; other methods count only if no preferred method has a signature.
    assert select_methods(result) == ["elastic", "robust", "iosi", "elastic"]
    assert select_methods(result[:1]) == ["iosi"] * 4


def test_only_extracted_signatures_have_an_expected_correlation() -> None:
    ones = [
        simulate_noisy_runs(1),
        make_sample_set([]),
        simulate_noisy_runs(2, runs=4),
        make_sample_set([np.zeros(100)] * 6),
    ]
    for method_result in extract_signatures(SampleSets.concatenate(ones)):
        is_there = [result.outcome == "extracted" for result in method_result.signatures]
        assert np.isfinite(method_result.expected_correlation).tolist() == is_there
        assert (
            (method_result.expected_correlation[is_there] >= 0) & (method_result.expected_correlation[is_there] <= 1)
        ).all()


def test_missing_bursts_are_counted_for_each_method() -> None:
    ones = [
        simulate_noisy_runs(1),
        make_sample_set([]),
        simulate_noisy_runs(2, runs=4),
        make_sample_set([np.zeros(100)] * 6),
    ]
    sets = SampleSets.concatenate(ones)
    kept = select_typical_runs(sets.duration_s, sets.offsets)
    for method_result in extract_signatures(sets):
        for place, (result, count) in enumerate(
            zip(method_result.signatures, method_result.missing_burst_count, strict=True)
        ):
            own = ones[place].select_runs(kept[sets.offsets[place] : sets.offsets[place + 1]])
            expected = (
                len(find_missing_bursts_in_set(own, result))
                if result.outcome in COMPARABLE_OUTCOMES and own.run_count > 2
                else np.nan
            )
            assert count == pytest.approx(expected, nan_ok=True), method_result.method


def test_stopped_runs_are_excluded_except_by_the_raw_method() -> None:
    whole = simulate_polls(BURSTS, 200.0)
    one = make_sample_set([*[whole] * 6, whole[:40], whole[:60]])
    for method_result in extract_signatures(SampleSets.concatenate([one])):
        expected = [False] * 8 if method_result.method == "iosi_raw" else [False] * 6 + [True] * 2
        assert method_result.is_outlier.tolist() == expected, method_result.method
        if method_result.method == "robust":
            np.testing.assert_allclose(method_result.signatures[0].bytes_per_s, true_rates(BURSTS, 200), atol=1e-3)


def test_published_method_excludes_runs_above_the_mean_factor_alone() -> None:
    ones = [simulate_noisy_runs(seed, runs=12) for seed in (1, 2, 3)]
    sets = SampleSets.concatenate(ones)
    published, filtered, raw = extract_signatures(sets, None, ("iosi", "iosi_filtered", "iosi_raw"))
    factors = outliers.local_outlier_factors(sets.duration_s, outliers.run_volumes(sets), sets.offsets).reshape(3, 12)
    assert published.is_outlier.tolist() == (factors > factors.mean(axis=1, keepdims=True)).ravel().tolist()
    assert published.is_outlier.sum() > filtered.is_outlier.sum()
    assert not raw.is_outlier.any()


def test_parameters_of_iosi_record_the_choices() -> None:
    params = SignatureParams(iosi=IosiParams(gamma=0.4))
    published, filtered, raw = (params.iosi_params(name) for name in ("iosi", "iosi_filtered", "iosi_raw"))
    assert published == params.iosi
    assert filtered == replace(
        params.iosi, has_duration_filter=True, min_outlier_factor=1.5, max_outlier_ratio=0.5, max_excess_ratio=0.1,
        requires_high_crest=True, ripple_ratio=0.01, has_idle_waves=True, min_coverage_ratio=0.5,
    )  # fmt: skip
    assert raw == replace(params.iosi, has_preprocessing=False)
    assert params.iosi_params("elastic") is None


def test_run_with_heavy_interference_is_kept_by_default() -> None:
    clean, rng = simulate_polls(BURSTS, 200.0), np.random.default_rng(2)
    rows = [clean + rng.uniform(0, 1e5, len(clean)) for _ in range(7)]
    one = make_sample_set([*rows, clean + 4e9 * (np.arange(len(clean)) > 30)])
    method_result = {answer.method: answer for answer in extract_signatures(SampleSets.concatenate([one]))}
    assert not method_result["robust"].is_outlier.any()
    assert method_result["mean"].is_outlier.tolist() == [False] * 7 + [True]
    assert len(method_result["robust"].signatures[0].bursts) == 4


@pytest.mark.parametrize("method", METHODS)
def test_every_method_finds_the_bursts_of_clean_runs(method: str) -> None:
    result = extract_all(make_sample_set([simulate_polls(BURSTS, 200.0)] * 6), (method,))[method]
    assert result.outcome == "extracted"
    assert len(result.bursts) == 4
    assert result.bytes_per_s.sum() == pytest.approx(6.4e10, rel=0.25)
