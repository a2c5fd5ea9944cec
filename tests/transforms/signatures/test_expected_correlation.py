"""Expected correlation increases with the true correlation, and missing bursts are found."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.ndimage import maximum_filter1d

from iosig.studies.signatures.families import FAMILIES
from iosig.studies.signatures.injected import FamilySetting
from iosig.transforms.signatures.bursts import detect_bursts
from iosig.transforms.signatures.expected_correlation import (
    _COEFFICIENTS,
    FEATURES,
    RunSummary,
    find_missing_bursts_in_set,
    moving_maximum,
    pearson_correlation,
    predict_correlations,
    select_method,
    summarize_runs,
)
from iosig.transforms.signatures.methods import extract_signatures
from iosig.transforms.signatures.sample_sets import SampleSet, SampleSets
from iosig.transforms.signatures.signature import Signature
from iosig.transforms.synthetic.workload import Application, bursts
from tests.transforms.run_sets import make_sample_set, simulate_polls, true_rates

NAN = float("nan")
TRUTH = true_rates([(a, a + 30.0, 2e9) for a in (100.0, 300.0, 500.0, 700.0)], 900)


def simulate_clean_runs(runs: int = 8, noise: float = 0.0) -> SampleSet:
    rng = np.random.default_rng(1)
    rows = [simulate_polls([(a, a + 30.0, 2e9) for a in (100.0, 300.0, 500.0, 700.0)], 900.0, 2.0) for _ in range(runs)]
    return make_sample_set(
        [row + noise * rng.gamma(0.5, 2e9, len(row)) for row in rows], 2.0, [0.0] * runs, [900.0] * runs
    )


def make_signature(rates: np.ndarray) -> Signature:
    return Signature.from_curve(rates, detect_bursts(rates))


def make_half_signature() -> Signature:
    rates = TRUTH.copy()
    rates[400:] = 0.0
    return make_signature(rates)


def test_every_feature_has_a_coefficient() -> None:
    assert set(_COEFFICIENTS) == {"intercept", *FEATURES}


def test_truth_has_higher_expected_correlation_than_errors() -> None:
    summary = RunSummary.from_set(simulate_clean_runs())
    assert summary is not None
    whole, half, elsewhere = (
        summary.predict_correlation(one, "elastic")
        for one in (make_signature(TRUTH), make_half_signature(), make_signature(np.roll(TRUTH, 60)))
    )
    assert whole > 0.9
    assert whole > half + 0.1
    assert half > elsewhere
    assert np.isnan(summary.predict_correlation(Signature.missing("no_io"), "elastic"))


@pytest.mark.filterwarnings("error")
def test_absurd_rates_have_low_expected_correlation() -> None:
    summary = RunSummary.from_set(simulate_clean_runs())
    assert summary is not None
    assert (
        summary.predict_correlation(make_signature(np.where(np.arange(900) % 300 < 2, 1e300, TRUTH)), "iosi_raw") < 0.5
    )


def test_noise_lowers_expected_correlation() -> None:
    summaries = [RunSummary.from_set(simulate_clean_runs(noise=noise)) for noise in (0.0, 0.3, 3.0)]
    expected_values = [
        summary.predict_correlation(make_signature(TRUTH), "elastic") for summary in summaries if summary is not None
    ]
    assert expected_values[0] >= expected_values[1] > expected_values[2] + 0.2


def test_summaries_do_not_depend_on_the_batch() -> None:
    sets = [simulate_clean_runs(runs, noise) for runs, noise in ((8, 0.2), (2, 0.0), (8, 1.0), (25, 0.3), (8, 0.0))]
    summaries = dict(summarize_runs(sets))
    assert sorted(summaries) == [0, 2, 3, 4]
    signatures = [
        make_signature(TRUTH),
        make_half_signature(),
        Signature.missing("no_io"),
        make_signature(np.roll(TRUTH, 60)),
    ]
    expected_values = predict_correlations([summaries[place] for place in sorted(summaries)], signatures, "robust")
    for place, signature, value in zip(sorted(summaries), signatures, expected_values, strict=True):
        alone = RunSummary.from_set(sets[place])
        assert alone is not None
        np.testing.assert_array_equal(summaries[place].near, alone.near)
        assert summaries[place].set_features == alone.set_features
        np.testing.assert_equal(value, alone.predict_correlation(signature, "robust"))


@pytest.mark.parametrize("reach", [1, 4, 8])
def test_moving_maximum_matches_scipy(reach: int) -> None:
    values = np.random.default_rng(reach).exponential(1.0, (2, 3, 40))
    np.testing.assert_array_equal(moving_maximum(values, reach), maximum_filter1d(values, 2 * reach + 1))


def test_features_do_not_depend_on_unit_or_order_of_runs() -> None:
    one = simulate_clean_runs(noise=0.2)
    other = make_sample_set([4.0 * rates for rates in one.rates[::-1]], 2.0, [0.0] * 8, [900.0] * 8)
    first, second = RunSummary.from_set(one), RunSummary.from_set(other)
    assert first is not None
    assert second is not None
    np.testing.assert_allclose(
        first.compute_features(make_signature(TRUTH), "iosi"),
        second.compute_features(make_signature(4.0 * TRUTH), "iosi"),
        rtol=1e-9,
    )


@pytest.mark.parametrize("method", ["elastic", "robust", "iosi"])
def test_expected_correlation_is_the_linear_combination(method: str) -> None:
    summary = RunSummary.from_set(simulate_clean_runs(noise=2.0))
    assert summary is not None
    every = dict(zip(FEATURES, summary.compute_features(make_signature(TRUTH), method), strict=True))
    assert np.isfinite(list(every.values())).all()
    expected = _COEFFICIENTS["intercept"] + sum(_COEFFICIENTS[name] * value for name, value in every.items())
    assert 0.0 < expected < 1.0
    assert summary.predict_correlation(make_signature(TRUTH), method) == expected


def test_too_few_runs_have_no_summary() -> None:
    assert RunSummary.from_set(simulate_clean_runs(2)) is None
    assert find_missing_bursts_in_set(simulate_clean_runs(2), make_signature(TRUTH)).shape == (0, 2)


def test_preferred_methods_are_selected_first() -> None:
    assert select_method({"iosi": 0.99, "robust": 0.3, "elastic": NAN}) == "robust"
    assert select_method({"iosi": 0.5, "mean": 0.6}) == "mean"
    assert select_method({"iosi": NAN, "robust": NAN}) == "robust"
    assert select_method({"iosi": NAN}) == "iosi"


def test_insufficient_correlation_is_not_selected() -> None:
    assert select_method({"elastic": 0.2, "robust": 0.31}) == "robust"
    assert select_method({"elastic": 0.2, "iosi": 0.25}) == "elastic"
    assert select_method({"iosi": 0.25, "mean": 0.1}) == "iosi"


@pytest.mark.parametrize("seed", range(4))
def test_pure_interference_has_no_signature(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rates = 1e6 * rng.exponential(size=(10, 300)) + 5e8 * (rng.random((10, 300)) < 0.02)
    sets = SampleSets.concatenate([make_sample_set([*rates], 2.0, [0.0] * 10, [600.0] * 10)])
    for answer in extract_signatures(sets, methods=("elastic", "robust", "time_normalized")):
        assert answer.signatures[0].outcome == "no_common_bursts"
        assert np.isnan(answer.expected_correlation[0])


def test_missing_bursts_are_found() -> None:
    assert len(find_missing_bursts_in_set(simulate_clean_runs(), make_signature(TRUTH))) == 0
    result = find_missing_bursts_in_set(simulate_clean_runs(), make_half_signature()) * 900.0
    assert result.mean(axis=1) == pytest.approx([515.0, 715.0], abs=6.0)
    assert len(find_missing_bursts_in_set(simulate_clean_runs(), Signature.missing("no_common_bursts"))) == 4
    assert len(find_missing_bursts_in_set(simulate_clean_runs(noise=0.5), make_signature(TRUTH))) == 0


def test_missing_bursts_are_counted_for_comparable_outcomes() -> None:
    summary = RunSummary.from_set(simulate_clean_runs())
    assert summary is not None
    assert [summary.count_missing_bursts(one) for one in (make_signature(TRUTH), make_half_signature())] == [0.0, 2.0]
    assert summary.count_missing_bursts(Signature.missing("no_common_bursts")) == 4.0
    assert np.isnan(
        [summary.count_missing_bursts(Signature.missing(why)) for why in ("no_io", "too_few_samples")]
    ).all()


@pytest.mark.parametrize("seed", range(3))
def test_coincidences_are_not_missing_bursts(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rates = np.repeat(rng.random((10, 100)) < 0.3, 8, axis=1) * 2e9
    rates[:, 50:65] = 2e9
    result = (
        find_missing_bursts_in_set(
            make_sample_set([*rates], 2.0, [0.0] * 10, [1600.0] * 10), Signature.missing("no_common_bursts")
        )
        * 1600.0
    )
    assert len(result) <= 2, "of five to seven places that are high by chance"
    assert (np.abs(result.mean(axis=1) - 115.0) < 30.0).any()
    assert len(find_missing_bursts_in_set(simulate_clean_runs(noise=0.05), Signature.missing("no_common_bursts"))) == 4


def test_pearson_correlation_matches_numpy() -> None:
    rng = np.random.default_rng(1)
    first, second = rng.random((3, 50)), rng.random((3, 50))
    expected = [np.corrcoef(a, b)[0, 1] for a, b in zip(first, second, strict=True)]
    assert pearson_correlation(first, second) == pytest.approx(expected)
    assert pearson_correlation(np.ones(5), np.arange(5.0)) == 0.0


def test_expected_correlation_is_higher_on_calm_sites() -> None:
    application = Application("intercept", "a", "p", 1, 900.0, bursts(100, 200, [60.0] * 4, [2.0], "write"))
    expected_values = {}
    for level in ("calm", "stormy"):
        summary = RunSummary.from_set(FamilySetting(FAMILIES[0], level, (application,)).draw(4).sets.get_set(0))
        assert summary is not None
        expected_values[level] = summary.predict_correlation(
            make_signature(true_rates([(b.offset_s, b.end_s, 1.8e9) for b in application.bursts], 900)), "elastic"
        )
    assert expected_values["calm"] > expected_values["stormy"] + 0.1
