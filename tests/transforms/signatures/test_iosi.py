"""IOSI: hand-computed cases, a naive implementation, a simulated site, and arbitrary input."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import product
from typing import get_args

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings, strategies as st

from iosig.transforms.arrays import Ragged
from iosig.transforms.signatures import iosi as module
from iosig.transforms.signatures.iosi import (
    IosiParams,
    extract_iosi,
    low_frequency_component,
    smooth_run,
    trace_iosi,
)
from iosig.transforms.signatures.iosi_bursts import BurstTable, CutBursts, SegmentedSamples
from iosig.transforms.signatures.iosi_crests import RowBursts, segment_bursts
from iosig.transforms.signatures.methods import SignatureParams, extract_signatures
from iosig.transforms.signatures.outliers import detect_outliers, run_volumes
from iosig.transforms.signatures.preprocessing import PreprocessedSamples, merge_node_counts
from iosig.transforms.signatures.sample_sets import SampleSet, SampleSets
from iosig.transforms.signatures.signature import Outcome, Signature
from iosig.transforms.signatures.similarity import correlation, cross_correlation
from iosig.transforms.synthetic.site import SiteParams, signature, simulate
from iosig.transforms.synthetic.workload import APPLICATIONS
from tests.budget import examples
from tests.naive.signatures import iosi as naive
from tests.transforms import run_sets
from tests.transforms.run_sets import Burst, simulate_polls

Reals = npt.NDArray[np.float64]
NAN = float("nan")
PAPER = IosiParams()
FILTERED = PAPER.add_filters()
#: `iosi_filtered` without preprocessing: few bursts that can be named
FILTERED_RAW = replace(FILTERED, has_preprocessing=False)
RAW = replace(PAPER, has_preprocessing=False)
VARIANTS = {"iosi": PAPER, "iosi_filtered": FILTERED, "iosi_raw": RAW, "filtered raw": FILTERED_RAW}


def extract(one: SampleSet, params: IosiParams = FILTERED) -> Signature:
    return extract_iosi([one], params)[0]


def correlations_with_average(rows: Reals, bursts: RowBursts) -> Reals:
    segmented = SegmentedSamples(rows, rows, bursts, 1.0, NAN)
    return BurstTable.concatenate([CutBursts.from_samples(segmented)]).correlate_with_average()


def as_preprocessed(rows: Reals) -> PreprocessedSamples:
    return PreprocessedSamples(rows, NAN, np.arange(len(rows)))


def make_sample_set(rates: list[Reals], durations: list[float] | None = None, interval_s: float = 2.0) -> SampleSet:
    counts = [len(one) for one in rates]
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    values = np.concatenate([np.zeros(0), *rates])
    duration = np.array(counts, dtype=np.float64) * interval_s if durations is None else np.array(durations)
    return SampleSet(Ragged(values, offsets), interval_s, np.zeros(len(rates)), duration)


def simulate_bursts(length: int, *bursts: tuple[float, float, float]) -> Reals:
    """Simulate a run in steps of 2 s with smooth bursts of (second of the crest, duration, rate)."""
    seconds = 2.0 * np.arange(length) + 1.0
    total = np.zeros(length)
    for middle, duration, rate in bursts:
        total += rate * np.maximum(1.0 - np.abs(seconds - middle) / (duration / 2), 0.0)
    return total


def simulate_five_runs(*foreign: tuple[int, float, float, float]) -> SampleSet:
    """Simulate runs of 800 s with bursts at about 200 and 600 s, and interference of (run, crest, duration, rate)."""
    rates = []
    for run, late in enumerate((0.0, 2.0, 4.0, 2.0, 2.0)):
        own = simulate_bursts(400, (200 + late, 40, 2.0e9), (600 + late, 24, 1.0e9))
        rates.append(own + sum((simulate_bursts(400, of[1:]) for of in foreign if of[0] == run), np.zeros(400)))
    return make_sample_set(rates)


def assert_valid(result: Signature) -> None:
    """Check the invariants of a signature."""
    assert result.outcome in get_args(Outcome)
    if result.outcome != "extracted":
        assert len(result.bytes_per_s) == len(result.bursts) == 0
        return
    curve, bursts = result.bytes_per_s, result.bursts
    assert np.isfinite(curve).all()
    assert (curve >= 0).all()
    begin, end = bursts.start_s.astype(int), bursts.end_s.astype(int)
    assert (end > begin).all()
    assert (begin[1:] >= end[:-1]).all()
    assert begin[0] >= 0
    assert end[-1] <= len(curve)
    assert ((bursts.peak_s > bursts.start_s) & (bursts.peak_s < bursts.end_s)).all()
    assert ((bursts.support_ratio > 0) & (bursts.support_ratio <= 1)).all()
    is_in = np.zeros(len(curve), dtype=np.bool_)
    for first, last, peak, volume in zip(begin, end, bursts.peak_s.astype(int), bursts.volume_bytes, strict=True):
        is_in[first:last] = True
        assert curve[peak] == curve[first:last].max()
        with np.errstate(over="ignore"):
            assert volume == pytest.approx(curve[first:last].sum(), rel=1e-9)
    assert not curve[~is_in].any()


# ---- hand-computed cases


def test_common_bursts_are_averaged_at_their_mean_time() -> None:
    result = extract(simulate_five_runs())
    assert result.outcome == "extracted"
    assert_valid(result)
    assert len(result.bursts) == 2
    # Point k is the middle of its step; runs are 2 s late on average.
    assert result.bursts.peak_s == pytest.approx([201.5, 601.5], abs=1)
    assert result.bursts.volume_bytes == pytest.approx([2.0e9 * 40 / 2, 1.0e9 * 24 / 2], rel=0.05)
    assert result.bursts.support_ratio.tolist() == [1, 1]
    assert 0 <= result.background_bytes_per_s < 1e6
    assert len(result.bytes_per_s) == 799
    assert np.isnan(result.low_bytes_per_s).all()


def test_interfering_burst_of_one_run_is_excluded() -> None:
    result = extract(simulate_five_runs((1, 400, 30, 2.0e9)))
    assert len(result.bursts) == 2
    assert not result.bytes_per_s[350:450].any()


def test_interfering_burst_next_to_a_common_burst_is_not_elected() -> None:
    alone, beside = extract(simulate_five_runs()), extract(simulate_five_runs((1, 250, 20, 1.0e9)))
    assert len(beside.bursts) == 2
    assert beside.bursts.peak_s == pytest.approx(alone.bursts.peak_s, abs=2)


def test_background_is_subtracted_and_reported() -> None:
    quiet = simulate_five_runs()
    noisy = SampleSet(Ragged(quiet.samples.values + 0.1e9, quiet.samples.offsets), 2.0, quiet.start_s, quiet.duration_s)
    result = extract(noisy)
    assert result.background_bytes_per_s == pytest.approx(0.1e9, rel=0.2)
    assert result.volume_bytes == pytest.approx(extract(quiet).volume_bytes, rel=0.05)


def test_signature_of_a_single_run_has_its_bursts() -> None:
    result = extract(make_sample_set([simulate_bursts(400, (200, 40, 2e9), (600, 24, 1e9))]))
    assert len(result.bursts) == 2
    assert result.bursts.support_ratio.tolist() == [1, 1]


def test_raw_method_uses_median_length_and_no_background() -> None:
    rates = [simulate_bursts(count, (200, 40, 2e9), (600, 24, 1e9)) for count in (400, 404, 410, 150, 420)]
    result = extract(make_sample_set(rates), replace(FILTERED_RAW, kappa=0.8))
    assert_valid(result)
    assert len(result.bytes_per_s) == 2 * 404 - 1
    assert np.isnan(result.background_bytes_per_s)
    assert result.bursts.support_ratio.tolist() == [1.0, 0.8]


def test_gaps_do_not_count_as_missing_bursts() -> None:
    whole = simulate_five_runs()
    values = whole.samples.values.copy()
    values[400 + 290 : 400 + 312] = NAN  # the second burst of the second run
    result = extract(SampleSet(Ragged(values, whole.samples.offsets), 2.0, whole.start_s, whole.duration_s))
    assert len(result.bursts) == 2
    assert result.bursts.volume_bytes == pytest.approx(extract(whole).bursts.volume_bytes, rel=0.1)


# ---- the published method

CLEAN_BURSTS: list[Burst] = [(150.0 + 180 * place, 180.0 + 180 * place, 3e9) for place in range(6)]


def simulate_clean_runs(factor: int, count: int) -> SampleSet:
    """Simulate noise-free runs of six bursts of 90 GB, with all times multiplied by a factor."""
    phases = np.linspace(0.0, 1.9, count)
    bursts: list[Burst] = [(factor * begin, factor * end, rate) for begin, end, rate in CLEAN_BURSTS]
    rows = [simulate_polls(bursts, factor * 1140.0, 2.0, phase_s) for phase_s in phases]
    return run_sets.make_sample_set(rows, 2.0, (-phases).tolist(), [factor * 1140.0] * count)


def assert_clean_bursts(result: Signature) -> None:
    """Check volume, number and centroids of the bursts of clean runs."""
    assert_valid(result)
    assert result.volume_bytes == pytest.approx(540e9, rel=0.001)
    assert result.bursts.volume_bytes == pytest.approx([90e9] * 6, rel=0.01)
    second = np.arange(len(result.bytes_per_s)) + 0.5
    pieces = zip(result.bursts.start_s.astype(int), result.bursts.end_s.astype(int), strict=True)
    centroids = [np.average(second[a:b], weights=result.bytes_per_s[a:b]) for a, b in pieces]
    assert centroids == pytest.approx([(begin + end) / 2 for begin, end, _ in CLEAN_BURSTS], abs=1.5)


def test_published_method_finds_all_bytes_of_clean_runs() -> None:
    assert_clean_bursts(extract(simulate_clean_runs(1, 8), PAPER))


def test_published_method_normalizes_weak_scaling_to_the_smallest_node_count() -> None:
    # section 6.4 and Figure 20: 160, 320 and 640 nodes
    sizes = [simulate_clean_runs(factor, 6) for factor in (1, 2, 4)]
    (answer,) = extract_signatures(SampleSets.concatenate([merge_node_counts(sizes)]), None, ("iosi",))
    assert_clean_bursts(answer.signatures[0])


def test_ripples_of_idle_time_are_no_bursts() -> None:
    run = np.repeat(simulate_bursts(400, (200, 40, 2e9), (600, 24, 1e9)), 2)[None]
    waves = segment_bursts(low_frequency_component(run), PAPER.wave_rules)
    segmented = module._segment(as_preprocessed(run), PAPER)
    assert isinstance(segmented, SegmentedSamples)
    assert len(waves) > 20
    assert segmented.bursts.peak == pytest.approx([200, 600], abs=3)
    with_idle = module._segment(as_preprocessed(run), replace(PAPER, has_idle_waves=True))
    assert isinstance(with_idle, SegmentedSamples)
    assert len(with_idle.bursts) == len(waves)


def test_average_burst_has_the_seconds_that_enough_bursts_cover() -> None:
    # crests of long flat bursts are at either end, so that aligned bursts do not coincide
    sizes = merge_node_counts([simulate_clean_runs(factor, 6) for factor in (1, 2, 4)])
    published, half, everywhere = (extract(sizes, replace(PAPER, min_coverage_ratio=ratio)) for ratio in (0, 0.5, 1))
    assert published.volume_bytes == pytest.approx(540e9, rel=0.001)
    assert half.volume_bytes < 0.95 * published.volume_bytes
    assert everywhere.volume_bytes < 0.95 * half.volume_bytes


# ---- outcomes


def test_empty_set_has_too_few_samples() -> None:
    for params in VARIANTS.values():
        assert extract(make_sample_set([]), params).outcome == "too_few_samples"
    for params in (PAPER, FILTERED):
        assert extract(make_sample_set([np.full(50, NAN)] * 5), params).outcome == "too_few_samples"


def test_silent_runs_have_no_io() -> None:
    for params in VARIANTS.values():
        assert extract(make_sample_set([np.zeros(100)] * 5), params).outcome == "no_io"
    assert extract(make_sample_set([np.full(100, NAN)] * 5), RAW).outcome == "no_io"


def test_unrelated_runs_have_no_common_bursts() -> None:
    apart = [simulate_bursts(400, (80 + 140 * run, 40, 2e9)) for run in range(5)]
    result = extract(make_sample_set(apart))
    assert result.outcome == "no_common_bursts"
    assert result.background_bytes_per_s >= 0
    assert extract(make_sample_set([np.full(100, 5e8)] * 5)).outcome == "no_common_bursts"


@pytest.mark.parametrize("level", [1, 2, 3, 4])
@pytest.mark.parametrize("length", [1, 2, 3, 7])
def test_short_samples_have_an_outcome(length: int, level: int) -> None:
    for params in VARIANTS.values():
        assert_valid(extract(make_sample_set([np.arange(length) * 1e9] * 5), replace(params, level=level)))


extreme = st.one_of(
    st.sampled_from([0.0, NAN, float("inf"), 5e-324, 1e-310, 1.0, 1e9, 1e307, 1.7e308]), st.floats(0, 1e10)
)


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(st.lists(extreme, max_size=60), max_size=6), st.sampled_from([0.5, 1.0, 2.0, 3.7]))
def test_any_input_has_a_valid_outcome(drawn: list[list[float]], interval_s: float) -> None:
    rates = [np.array(one, dtype=np.float64) for one in drawn]
    for params in VARIANTS.values():
        assert_valid(extract(make_sample_set(rates, interval_s=interval_s), params))


# ---- properties


@cache
def simulate_noisy_runs(seed: int = 1) -> SampleSet:
    rng = np.random.default_rng(seed)
    foreign = [
        (run, rng.uniform(50, 750), rng.uniform(10, 60), rng.uniform(0.3, 3) * 1e9) for run in (0, 1, 2, 3, 4) * 3
    ]
    whole = simulate_five_runs(*foreign)
    surface = 0.05e9 * rng.random(len(whole.samples.values))
    return SampleSet(
        Ragged(whole.samples.values + surface, whole.samples.offsets), 2.0, whole.start_s, whole.duration_s
    )


@pytest.mark.parametrize("method", ["iosi", "iosi_filtered"])
@pytest.mark.parametrize("seed", range(4))
def test_result_scales_and_ignores_the_order_of_runs(seed: int, method: str) -> None:
    one, params = simulate_noisy_runs(seed), VARIANTS[method]
    result = extract(one, params)
    scaled = SampleSet(Ragged(one.samples.values * 1024.0, one.samples.offsets), 2.0, one.start_s, one.duration_s)
    np.testing.assert_allclose(extract(scaled, params).bytes_per_s, result.bytes_per_s * 1024.0, rtol=1e-9)
    turned = make_sample_set(one.rates[::-1])
    np.testing.assert_allclose(extract(turned, params).bytes_per_s, result.bytes_per_s, rtol=1e-9, atol=1.0)


# ---- naive implementation


def to_tuples(result: RowBursts) -> list[naive.Burst]:
    return list(
        zip(result.run.tolist(), result.first.tolist(), result.peak.tolist(), result.last.tolist(), strict=True)
    )


def test_low_pass_filter_removes_high_frequencies() -> None:
    times = np.arange(2000)
    slow, fast = np.cos(2 * np.pi * times / 100), np.cos(2 * np.pi * times / 5)
    inner = slice(300, -300)
    np.testing.assert_allclose(low_frequency_component((slow + fast)[None])[0][inner], slow[inner], atol=0.01)
    np.testing.assert_allclose(low_frequency_component(np.full((1, 100), 5.0)), np.full((1, 100), 5.0), rtol=2e-3)


def test_low_pass_filter_keeps_zeros_exactly() -> None:
    values = np.zeros((2, 1500))
    values[0, 700:710] = 1.0
    result = low_frequency_component(values)
    assert not result[1].any()
    assert not result[0, :300].any()
    assert not result[0, -300:].any()
    assert result[0, 700:710].min() > 0.5


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("scale", [1e308, 5e-324, 0.0])
@pytest.mark.parametrize(("points", "level"), [(1, 2), (2, 3), (61, 1), (90, 3), (123, 7)])
def test_low_pass_filter_accepts_extreme_values_and_short_rows(scale: float, points: int, level: int) -> None:
    values = np.full((2, points), scale)
    values[1, ::2] = 0.0
    assert low_frequency_component(values, level).shape == (2, points)


def random_rows(seed: int) -> Reals:
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, 7))
    rows = rng.random((count, 160)) * 0.1
    for middle in rng.uniform(10, 150, int(rng.integers(1, 5))):
        for row in rows:
            spread = rng.uniform(2, 8)
            row += rng.uniform(0.5, 1.0) * np.exp(-(((np.arange(160) - middle - rng.normal(0, 3)) / spread) ** 2))
    return rows / rows.max()


@pytest.mark.parametrize("params", [PAPER, FILTERED], ids=["iosi", "iosi_filtered"])
@pytest.mark.parametrize("seed", range(12))
def test_correlations_match_naive_implementation(seed: int, params: IosiParams) -> None:
    rows = random_rows(seed)
    result = segment_bursts(low_frequency_component(rows), params.wave_rules)
    np.testing.assert_allclose(
        correlations_with_average(rows, result),
        naive.correlations_with_average(rows.tolist(), to_tuples(result)),
        atol=1e-9,
    )


@pytest.mark.parametrize(
    ("first", "crest", "last", "begin", "end"),
    [
        # Divided in the middle of the overlap.
        ([0, 8], [5, 15], [12, 20], [0, 10], [10, 20]),
        # Each burst keeps its crest, even if the middle lies beyond the later or the earlier crest.
        ([0, 5], [4, 6], [20, 9], [0, 6], [6, 9]),
        ([10, 0], [15, 18], [17, 30], [10, 16], [16, 30]),
        # If two bursts have the same crest, the later burst may become empty.
        ([0, 2], [5, 5], [9, 6], [0, 6], [6, 6]),
        ([-3, 90], [2, 95], [6, 110], [0, 90], [6, 100]),
    ],
)
def test_overlapping_bursts_are_separated(
    first: list[int], crest: list[int], last: list[int], begin: list[int], end: list[int]
) -> None:
    parted = module._separate_overlaps(np.array(first), np.array(crest), np.array(last), 100)
    assert [side.tolist() for side in parted] == [begin, end]


@pytest.mark.parametrize("variant", [PAPER, FILTERED], ids=["iosi", "iosi_filtered"])
def test_signatures_match_naive_implementation(variant: IosiParams) -> None:
    params = replace(variant, kappa=0.7)
    heights = np.linspace(0.05, 0.25, 5).tolist()
    extracted = 0
    for seed in range(24):
        rows = random_rows(seed)
        result = segment_bursts(low_frequency_component(rows), params.wave_rules)
        bursts, values = to_tuples(result), rows.tolist()
        widths = naive.widths(bursts, 4)
        grids = list(product(widths, heights))
        likeness = correlations_with_average(rows, result).tolist()
        clusters = naive.common(values, bursts, likeness, grids, params.gamma, params.kappa)
        (one,) = module._extract([as_preprocessed(rows)], params)
        if not clusters:
            assert one.outcome == "no_common_bursts"
            continue
        curve, seconds = naive.signature(values, bursts, clusters, params.min_coverage_ratio)
        np.testing.assert_allclose(one.bytes_per_s, curve, atol=1e-9)
        assert list(zip(one.bursts.start_s.tolist(), one.bursts.end_s.tolist(), strict=True)) == seconds
        assert_valid(one)
        extracted += 1
    assert extracted > 12


def test_batch_size_does_not_change_results(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [as_preprocessed(random_rows(seed)) for seed in range(8)]
    result = []
    for count in (1, 40, 10_000):
        monkeypatch.setattr(module, "_BATCH_BURSTS", count)
        result.append([one.bytes_per_s.tolist() for one in module._extract(rows, replace(FILTERED, kappa=0.7))])
    assert result[0] == result[1] == result[2]
    assert any(result[0])


# ---- intermediate results


def assert_traced_alike(one: SampleSet, method: str, min_run_count: int = 5) -> module.IosiStages:
    """Check that the traced signature has the same bits as that of the night, and return its stages."""
    params = SignatureParams(min_run_count)
    alone = SampleSets.concatenate([one])
    # in a batch with another set
    (answer,) = extract_signatures(SampleSets.concatenate([simulate_five_runs(), one]), params, [method])
    iosi_params = params.iosi_params(method)
    assert iosi_params is not None
    stages = trace_iosi(one, iosi_params, min_run_count)
    expected = answer.signatures[1]
    assert stages.signature.outcome == expected.outcome
    np.testing.assert_array_equal(stages.signature.bytes_per_s, expected.bytes_per_s)
    np.testing.assert_array_equal(stages.signature.background_bytes_per_s, expected.background_bytes_per_s)
    for name in ("start_s", "peak_s", "end_s", "volume_bytes", "support_ratio"):
        np.testing.assert_array_equal(getattr(stages.signature.bursts, name), getattr(expected.bursts, name))
    np.testing.assert_array_equal(stages.scores.is_outlier, answer.is_outlier[5:])
    np.testing.assert_array_equal(stages.volume_bytes, run_volumes(alone))
    return stages


@pytest.mark.parametrize("method", ["iosi", "iosi_filtered", "iosi_raw"])
@pytest.mark.parametrize("seed", range(3))
def test_traced_signature_equals_that_of_the_night(seed: int, method: str) -> None:
    assert_traced_alike(simulate_noisy_runs(seed), method)


@settings(max_examples=examples(40), deadline=None)
@given(st.lists(st.lists(extreme, max_size=60), max_size=7), st.sampled_from(["iosi", "iosi_filtered", "iosi_raw"]))
def test_any_input_is_traced_like_in_the_night(drawn: list[list[float]], method: str) -> None:
    assert_traced_alike(make_sample_set([np.array(one, dtype=np.float64) for one in drawn]), method)


def test_stages_lead_from_runs_to_common_bursts() -> None:
    # each run has one burst of interference, and the sixth is cut off
    crests = (80, 300, 400, 480, 720)
    interference = [(run, crest, 30, 2.0e9) for run, crest in enumerate(crests)]
    rates = [*simulate_five_runs(*interference).rates, simulate_five_runs().rates[0][:150]]
    stages = assert_traced_alike(make_sample_set(rates), "iosi_filtered")
    assert stages.scores.is_outlier.tolist() == [False] * 5 + [True]
    assert stages.samples.run.tolist() == [0, 1, 2, 3, 4]
    assert stages.segmented is not None
    assert stages.clustered is not None
    assert stages.dense_units is not None
    assert stages.segmented.smoothed.shape == (5, 799)
    bursts, owner = stages.segmented.bursts, stages.clustered.clusters.owner
    for number, middle in enumerate((201.5, 601.5)):
        assert bursts.run[owner == number].tolist() == [0, 1, 2, 3, 4]
        assert bursts.peak[owner == number] == pytest.approx([middle] * 5, abs=4)
    assert bursts.run[owner < 0].tolist() == [0, 1, 2, 3, 4]
    assert bursts.peak[owner < 0] == pytest.approx(crests, abs=4)
    grid = stages.clustered.clusters.grid[0]
    assert stages.clustered.clusters.explained_count[0, grid] == 10
    assert (stages.dense_units.sample_count >= 3).all()


def test_runs_that_are_too_few_keep_their_scores() -> None:
    one = simulate_five_runs()
    stages = assert_traced_alike(one, "iosi", min_run_count=6)
    assert stages.signature.outcome == "too_few_samples"
    assert stages.segmented is None
    assert np.isfinite(stages.scores.factor).all()
    few = assert_traced_alike(make_sample_set(one.rates[:4]), "iosi")
    assert np.isnan(few.scores.factor).all()
    assert np.isnan(few.scores.threshold).all()


@pytest.mark.parametrize("level", [1, 2, 3])
def test_smoothed_run_is_a_row_of_the_set(level: int) -> None:
    params = replace(PAPER, level=level)
    segmented = trace_iosi(simulate_noisy_runs(), params, 5).segmented
    assert segmented is not None
    for row in range(len(segmented.relative)):
        run = smooth_run(segmented, row, params)
        np.testing.assert_array_equal(run.bytes_per_s, segmented.smoothed[row] * segmented.maximum)
        assert run.burst_count == np.count_nonzero(segmented.bursts.run == row)
        assert 0 < run.mean_crest_bytes_per_s < run.bytes_per_s.max()


# ---- a simulated site


@cache
def site_sets() -> dict[str, SampleSet]:
    """Simulate the runs of each application on a calm site of 5 days, without outliers."""
    applications = [one for one in APPLICATIONS if one.name in {"ior_a", "ior_b", "ior_c"}]
    params = SiteParams(seed=3, days=5, fault_level=0, drift_ratio=0.003)
    site = simulate(params, applications)
    rates = site.traffic["write_bytes"].to_numpy() / params.interval_s
    jobs = site.jobs.join(site.runs, on="job_id").drop_nulls("ended_at")
    result = {}
    for name in ("ior_a", "ior_b", "ior_c"):
        runs = jobs.filter(application=name)
        began, ended = (
            (runs[column].dt.timestamp("ms").to_numpy() / 1e3 - params.start.timestamp()) / params.interval_s
            for column in ("started_at", "ended_at")
        )
        pieces = [rates[int(np.ceil(a)) : int(np.ceil(b)) + 1] for a, b in zip(began, ended, strict=True)]
        one = make_sample_set(pieces, ((ended - began) * params.interval_s).tolist())
        moved = run_volumes(SampleSets.concatenate([one]))
        result[name] = one.select_runs(~detect_outliers(one.duration_s, moved, np.array([0, one.run_count])))
    return result


@pytest.mark.parametrize("name", ["ior_a", "ior_b", "ior_c"])
def test_accuracy_on_a_simulated_site_matches_the_paper(name: str) -> None:
    truth = signature(next(one for one in APPLICATIONS if one.name == name), "write")
    result = extract(site_sets()[name])
    assert_valid(result)
    # The lower bounds of section 6.3.
    assert cross_correlation(result.bytes_per_s, truth) > 0.72
    assert correlation(result.bytes_per_s, truth) > 0.66
