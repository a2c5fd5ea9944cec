"""Trust: more of it for what is nearer to the truth, and red for what an eye sees and a signature lacks."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.ndimage import maximum_filter1d

from iosig.studies.signatures.families import FAMILIES
from iosig.studies.signatures.injected import FamilySetting
from iosig.transforms.signatures.bursts import bursts_of
from iosig.transforms.signatures.methods import extract
from iosig.transforms.signatures.sample_sets import SampleSet, SampleSets
from iosig.transforms.signatures.signature import Signature
from iosig.transforms.signatures.trust import (
    _WEIGHTS,
    EVIDENCE,
    Judge,
    alike,
    chosen,
    highest_around,
    judges_of,
    missed,
    trusts_of,
)
from iosig.transforms.synthetic.workload import Application, bursts
from tests.transforms.run_sets import polled, set_of, truth_by_second

NAN = float("nan")
TRUTH = truth_by_second([(a, a + 30.0, 2e9) for a in (100.0, 300.0, 500.0, 700.0)], 900)


def clean(runs: int = 8, noise: float = 0.0) -> SampleSet:
    rng = np.random.default_rng(1)
    rows = [polled([(a, a + 30.0, 2e9) for a in (100.0, 300.0, 500.0, 700.0)], 900.0, 2.0) for _ in range(runs)]
    return set_of([row + noise * rng.gamma(0.5, 2e9, len(row)) for row in rows], 2.0, [0.0] * runs, [900.0] * runs)


def curve(rates: np.ndarray) -> Signature:
    return Signature.curve(rates, bursts_of(rates))


def without_half() -> Signature:
    rates = TRUTH.copy()
    rates[400:] = 0.0
    return curve(rates)


def test_each_piece_of_evidence_has_a_weight() -> None:
    assert set(_WEIGHTS) == {"one", *EVIDENCE}


def test_the_truth_is_trusted_and_what_lacks_half_or_is_elsewhere_is_not() -> None:
    judge = Judge.of(clean())
    assert judge is not None
    whole, half, elsewhere = (
        judge.trust(one, "warped") for one in (curve(TRUTH), without_half(), curve(np.roll(TRUTH, 60)))
    )
    assert whole > 0.9
    assert whole > half + 0.1
    assert half > elsewhere
    assert np.isnan(judge.trust(Signature.nothing("no_io"), "warped"))


@pytest.mark.filterwarnings("error")
def test_what_is_absurdly_far_from_all_that_was_measured_is_not_trusted() -> None:
    judge = Judge.of(clean())
    assert judge is not None
    assert judge.trust(curve(np.where(np.arange(900) % 300 < 2, 1e300, TRUTH)), "iosi_raw") < 0.5


def test_noise_takes_trust_away() -> None:
    told = [Judge.of(clean(noise=noise)) for noise in (0.0, 0.3, 3.0)]
    trusts = [judge.trust(curve(TRUTH), "warped") for judge in told if judge is not None]
    assert trusts[0] >= trusts[1] > trusts[2] + 0.2


def test_judges_side_by_side_do_not_touch() -> None:
    sets = [clean(runs, noise) for runs, noise in ((8, 0.2), (2, 0.0), (8, 1.0), (25, 0.3), (8, 0.0))]
    judges = dict(judges_of(sets))
    assert sorted(judges) == [0, 2, 3, 4]
    signatures = [curve(TRUTH), without_half(), Signature.nothing("no_io"), curve(np.roll(TRUTH, 60))]
    trusts = trusts_of([judges[place] for place in sorted(judges)], signatures, "robust")
    for place, signature, trust in zip(sorted(judges), signatures, trusts, strict=True):
        alone = Judge.of(sets[place])
        assert alone is not None
        np.testing.assert_array_equal(judges[place].near, alone.near)
        assert judges[place].told == alone.told
        np.testing.assert_equal(trust, alone.trust(signature, "robust"))


@pytest.mark.parametrize("reach", [1, 4, 8])
def test_what_is_highest_around_is_what_a_filter_says(reach: int) -> None:
    values = np.random.default_rng(reach).exponential(1.0, (2, 3, 40))
    np.testing.assert_array_equal(highest_around(values, reach), maximum_filter1d(values, 2 * reach + 1))


def test_evidence_does_not_depend_on_the_unit_nor_on_the_order_of_runs() -> None:
    one = clean(noise=0.2)
    other = set_of([4.0 * rates for rates in one.rates[::-1]], 2.0, [0.0] * 8, [900.0] * 8)
    first, second = Judge.of(one), Judge.of(other)
    assert first is not None
    assert second is not None
    np.testing.assert_allclose(
        first.evidence(curve(TRUTH), "iosi"), second.evidence(curve(4.0 * TRUTH), "iosi"), rtol=1e-9
    )


@pytest.mark.parametrize("method", ["warped", "robust", "iosi"])
def test_trust_is_what_all_evidence_comes_to(method: str) -> None:
    judge = Judge.of(clean(noise=2.0))
    assert judge is not None
    every = dict(zip(EVIDENCE, judge.evidence(curve(TRUTH), method), strict=True))
    assert np.isfinite(list(every.values())).all()
    expected = _WEIGHTS["one"] + sum(_WEIGHTS[name] * value for name, value in every.items())
    assert 0.0 < expected < 1.0
    assert judge.trust(curve(TRUTH), method) == expected


def test_too_few_runs_have_no_judge() -> None:
    assert Judge.of(clean(2)) is None
    assert missed(clean(2), curve(TRUTH)).shape == (0, 2)


def test_chosen_is_a_contender_if_there_is_one() -> None:
    assert chosen({"iosi": 0.99, "robust": 0.3, "warped": NAN}) == "robust"
    assert chosen({"iosi": 0.5, "mean": 0.6}) == "mean"
    assert chosen({"iosi": NAN, "robust": NAN}) == "robust"
    assert chosen({"iosi": NAN}) == "iosi"


def test_what_is_hardly_trusted_is_no_choice() -> None:
    assert chosen({"warped": 0.2, "robust": 0.31}) == "robust"
    assert chosen({"warped": 0.2, "iosi": 0.25}) == "warped"
    assert chosen({"iosi": 0.25, "mean": 0.1}) == "iosi"


@pytest.mark.parametrize("seed", range(4))
def test_others_bursts_alone_make_no_signature_of_ours(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rates = 1e6 * rng.exponential(size=(10, 300)) + 5e8 * (rng.random((10, 300)) < 0.02)
    sets = SampleSets.of([set_of([*rates], 2.0, [0.0] * 10, [600.0] * 10)])
    for answer in extract(sets, methods=("warped", "robust", "stretched")):
        assert answer.signatures[0].outcome == "no_common_bursts"
        assert np.isnan(answer.trust[0])


def test_what_most_runs_have_and_a_signature_lacks_is_missed() -> None:
    assert len(missed(clean(), curve(TRUTH))) == 0
    found = missed(clean(), without_half()) * 900.0
    assert found.mean(axis=1) == pytest.approx([515.0, 715.0], abs=6.0)
    assert len(missed(clean(), Signature.nothing("no_common_bursts"))) == 4
    assert len(missed(clean(noise=0.5), curve(TRUTH))) == 0


def test_lacked_bursts_are_counted_where_runs_and_bytes_are_there() -> None:
    judge = Judge.of(clean())
    assert judge is not None
    assert [judge.lacked_burst_count(one) for one in (curve(TRUTH), without_half())] == [0.0, 2.0]
    assert judge.lacked_burst_count(Signature.nothing("no_common_bursts")) == 4.0
    assert np.isnan([judge.lacked_burst_count(Signature.nothing(why)) for why in ("no_io", "too_few_samples")]).all()


@pytest.mark.parametrize("seed", range(3))
def test_what_others_share_by_chance_is_not_missed(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rates = np.repeat(rng.random((10, 100)) < 0.3, 8, axis=1) * 2e9
    rates[:, 50:65] = 2e9
    found = missed(set_of([*rates], 2.0, [0.0] * 10, [1600.0] * 10), Signature.nothing("no_common_bursts")) * 1600.0
    assert len(found) <= 2, "of five to seven places that are high by chance"
    assert (np.abs(found.mean(axis=1) - 115.0) < 30.0).any()
    assert len(missed(clean(noise=0.05), Signature.nothing("no_common_bursts"))) == 4


def test_curves_are_alike_as_they_correlate() -> None:
    rng = np.random.default_rng(1)
    first, second = rng.random((3, 50)), rng.random((3, 50))
    expected = [np.corrcoef(a, b)[0, 1] for a, b in zip(first, second, strict=True)]
    assert alike(first, second) == pytest.approx(expected)
    assert alike(np.ones(5), np.arange(5.0)) == 0.0


def test_a_calm_familys_signatures_are_trusted_more_than_a_stormy_ones() -> None:
    application = Application("one", "a", "p", 1, 900.0, bursts(100, 200, [60.0] * 4, [2.0], "write"))
    trusts = {}
    for level in ("calm", "stormy"):
        judge = Judge.of(FamilySetting(FAMILIES[0], level, (application,)).drawn(4).sets.one(0))
        assert judge is not None
        trusts[level] = judge.trust(
            curve(truth_by_second([(b.offset_s, b.ended_s, 1.8e9) for b in application.bursts], 900)), "warped"
        )
    assert trusts["calm"] > trusts["stormy"] + 0.1
