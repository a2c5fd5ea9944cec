"""Curve fits of times: each model fits its data, noise has no model, and histograms are valid."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st

from iosig.transforms.extrapolation import time_models
from iosig.transforms.extrapolation.time_models import (
    NAMES,
    REASONS,
    TimeModel,
    extrapolate_histograms,
    fit_curves,
    rebin,
)
from iosig.transforms.traces.time_histograms import compute_histograms, merge_histograms
from iosig.transforms.traces.trace import TimeBin, TimeHistogram
from tests.budget import examples
from tests.naive.extrapolation import time_models as naive
from tests.naive.traces import time_histograms as naive_histograms

COUNTS = (8, 12, 16, 24)


def of(values: list[float] | np.ndarray) -> TimeHistogram:
    return compute_histograms(np.array(values, float), np.zeros(len(values), int), 1)[0]


def extrapolate_histogram(
    rank_counts: tuple[int, ...], parts: list[TimeHistogram], at: int, count: int
) -> tuple[TimeHistogram, TimeModel]:
    return extrapolate_histograms(rank_counts, [parts], at, [count])[0]


def one(values: list[float], at: int) -> tuple[str, float, str, str]:
    """Return model, prediction, rejected model and reason for one field at the four rank counts."""
    fits = fit_curves(COUNTS[: len(values)], np.array([values]), at)
    reason = REASONS[int(fits.reasons[0])]
    set_aside = NAMES[int(fits.set_aside[0])] if reason else ""
    return NAMES[int(fits.models[0])], float(fits.predicted[0]), set_aside, reason


def check(found: TimeHistogram, count: int) -> None:
    """Check the invariants of every extrapolated histogram."""
    assert found.count == sum(part.count for part in found.bins) == count
    assert len(found.bins) == min(5, count)
    assert 0 <= found.minimum_s <= found.mean_s <= found.maximum_s
    assert all(part.minimum_s <= part.mean_s <= part.maximum_s for part in found.bins)
    assert all(before.maximum_s <= after.minimum_s for before, after in pairwise(found.bins))
    assert all(part.minimum_s == part.maximum_s for part in found.bins if part.count == 1)
    total = sum(part.count * part.mean_s for part in found.bins)
    assert total == pytest.approx(count * found.mean_s, rel=1e-9, abs=1e-12)
    assert found.variance_s2 >= 0


# ---- the four models


@pytest.mark.parametrize(
    ("curve", "name", "formula"),
    [
        (lambda n: 0.25 + 0 * n, "constant", "0.25"),
        (lambda n: 0.5 + 0.01 * n, "linear", "0.5 + 0.01 n"),
        (lambda n: 0.01 * n, "linear", "0 + 0.01 n"),
        (lambda n: 3.0 - 0.01 * n, "linear", "3 - 0.01 n"),
        (lambda n: 24.0 / n, "inverse", "24 / n"),
        (lambda n: 1.5 + 24.0 / n, "inverse plus constant", "1.5 + 24 / n"),
        (lambda n: 9.0 - 24.0 / n, "inverse plus constant", "9 - 24 / n"),
        (lambda n: 0.0 * n, "constant", "0"),
    ],
)
@pytest.mark.parametrize("at", [4, 20, 32, 100])
def test_curve_fit_finds_each_model(curve: object, name: str, formula: str, at: int) -> None:
    values = curve(np.array(COUNTS, float))  # type: ignore[operator]
    fits = fit_curves(COUNTS, values[None], at)
    assert NAMES[int(fits.models[0])] == name
    assert fits.predicted[0] == pytest.approx(curve(at), abs=1e-12)  # type: ignore[operator]
    constant, slope = float(np.round(fits.constants[0], 9)), float(fits.slopes[0])
    assert TimeModel(name, abs(constant), slope).formula == formula


def test_exact_models_hold_at_any_distance() -> None:
    assert one([0.5 + 0.01 * n for n in COUNTS], 1_000_000)[:2] == ("linear", pytest.approx(10_000.5))
    assert one([24.0 / n for n in COUNTS], 1_000_000)[:2] == ("inverse", pytest.approx(24e-6))


# ---- noise


def test_models_with_negative_times_are_rejected() -> None:
    name, time, set_aside, reason = one([3.0 - 0.1 * n for n in COUNTS], 64)
    assert (set_aside, reason) == ("linear", "negative time")
    assert name != "linear"
    assert 0 <= time < 2.2


def test_significance_level_decreases_with_distance() -> None:
    values = [1.0, 1.3, 1.5, 2.4]
    assert one(values, 28)[0] == "linear"
    name, time, set_aside, reason = one(values, 100_000)
    assert (set_aside, reason) == ("linear", "not significant")
    assert name != "linear"
    assert time < 5


def test_clock_ticks_are_not_a_slope(monkeypatch: pytest.MonkeyPatch) -> None:
    values = [1e-6, 1.2e-6, 1.4e-6, 1.8e-6]
    assert one(values, 1000)[:2] == ("constant", pytest.approx(1.35e-6))
    monkeypatch.setattr(time_models, "_CLOCK_S", 0.0)
    assert one(values, 1000)[0] == "linear"


def test_noise_is_not_amplified_at_a_million_ranks() -> None:
    generator = np.random.default_rng(4)
    values = 1e-3 * generator.lognormal(0.0, 0.3, (5000, 4))
    fits = fit_curves(COUNTS, values, 1_000_000)
    assert fits.predicted.max() < 20e-3
    # A sum of many fields hardly changes.
    assert fits.predicted.mean() == pytest.approx(values.mean(), rel=0.15)


@pytest.mark.parametrize(("values", "name"), [([2.0], "constant"), ([2.0, 4.0], "constant"), ([3.0, 2.0], "inverse")])
def test_few_rank_counts_allow_only_one_parameter(values: list[float], name: str) -> None:
    assert one(values, 64)[0] == name


@pytest.mark.parametrize(
    ("counts", "values", "at"),
    [
        ((), [], 8),
        ((8, 8), [1.0, 1.0], 8),
        ((0, 8), [1.0, 1.0], 8),
        ((8, 12), [1.0, 1.0], 0),
        ((8, 12), [1.0], 8),
        ((8, 12), [1.0, -1.0], 8),
        ((8, 12), [1.0, float("nan")], 8),
    ],
)
def test_invalid_arguments_are_rejected(counts: tuple[int, ...], values: list[float], at: int) -> None:
    with pytest.raises(ValueError, match="rank count"):
        fit_curves(counts, np.array([values]), at)


@settings(max_examples=examples(150), deadline=None)
@given(
    st.lists(st.integers(1, 64), min_size=1, max_size=6, unique=True),
    st.sampled_from([1, 7, 20, 48, 1000]),
    st.randoms(use_true_random=False),
)
def test_models_match_naive_implementation(counts: list[int], at: int, chance: object) -> None:
    values = [chance.choice([0.0, 1.0, chance.uniform(0.5, 2.0)]) for _ in counts]  # type: ignore[attr-defined]
    fits = fit_curves(counts, np.array([values]), at)
    name, time = naive.model(counts, values, at)
    ours = NAMES[int(fits.models[0])]
    if ours != name:
        # Two models may fit equally well except for rounding: both are accepted then.
        one_s2, other_s2 = (float(naive.fit(each, counts, values)[2]) for each in (ours, name))
        assume(abs(one_s2 - other_s2) > 1e-12)
    assert ours == name
    assert fits.predicted[0] == pytest.approx(time, rel=1e-6, abs=1e-9)


# ---- histograms


def test_scaling_histograms_are_extrapolated() -> None:
    generator = np.random.default_rng(0)
    shape = generator.lognormal(0.0, 1.0, 240)
    found, model = extrapolate_histogram(COUNTS, [of(shape / n) for n in COUNTS], 48, 1000)
    check(found, 1000)
    wanted = of(shape / 48)
    assert (model.name, model.set_aside) == ("inverse", "")
    assert found.mean_s == pytest.approx(wanted.mean_s)
    assert found.variance_s2 == pytest.approx(wanted.variance_s2)
    for ours, theirs in zip(found.bins, wanted.bins, strict=True):
        assert (ours.minimum_s, ours.mean_s, ours.maximum_s) == pytest.approx(
            (theirs.minimum_s, theirs.mean_s, theirs.maximum_s)
        )


@pytest.mark.parametrize("count", [1, 2, 4, 5, 7, 1_000_000_000_000])
def test_extrapolated_histogram_has_the_requested_count(count: int) -> None:
    parts = [of(np.arange(1.0, 2.0 + n)) for n in (1, 3, 6, 30)]
    check(extrapolate_histogram(COUNTS, parts, 64, count)[0], count)


def test_count_zero_gives_an_empty_histogram() -> None:
    found, _ = extrapolate_histogram(COUNTS, [of([1.0])] * 4, 64, 0)
    assert (found.count, found.bins) == (0, ())


def test_empty_histograms_are_rejected() -> None:
    for parts, count in (([of([1.0])] * 3 + [merge_histograms([])], 1), ([of([1.0])] * 4, -1), ([of([1.0])] * 3, 1)):
        with pytest.raises(ValueError, match=r"must not be empty|for each rank count"):
            extrapolate_histogram(COUNTS, parts, 64, count)


@settings(max_examples=examples(60), deadline=None)
@given(
    st.lists(
        st.lists(st.lists(st.floats(0, 1e3, allow_subnormal=False), min_size=1, max_size=12), min_size=4, max_size=4),
        min_size=1,
        max_size=5,
    ),
    st.sampled_from([1, 14, 24, 64, 100_000]),
    st.lists(st.integers(1, 30), min_size=5, max_size=5),
)
def test_extrapolated_histograms_are_valid(fields: list[list[list[float]]], at: int, wanted: list[int]) -> None:
    parts = [[of(values) for values in field] for field in fields]
    counts = wanted[: len(parts)]
    many = extrapolate_histograms(COUNTS, parts, at, counts)
    for field, count, (found, model) in zip(parts, counts, many, strict=True):
        check(found, count)
        name, mean = naive.model(COUNTS, [part.mean_s for part in field], at)
        if name == model.name:
            assert found.mean_s == pytest.approx(mean, rel=1e-6, abs=1e-9)
        assert (found, model) == extrapolate_histogram(COUNTS, field, at, count)


def test_rebinning_preserves_the_mean() -> None:
    generator = np.random.default_rng(8)
    for size in (1, 2, 3, 5, 12, 100):
        part = of(generator.lognormal(0.0, 1.0, size))
        held = [(each.count, each.minimum_s, each.mean_s, each.maximum_s) for each in part.bins]
        for bin_count in range(1, 6):
            found = rebin([part], bin_count)[0]
            if bin_count == len(held):
                assert found.tolist() == [list(row[1:]) for row in held]
                continue
            assert found[:, 1].mean() == pytest.approx(part.mean_s)
            assert (found[:, 0] <= found[:, 1]).all()
            assert (found[:, 1] <= found[:, 2]).all()
            assert (found[:-1, 2] <= found[1:, 0] + 1e-12).all()
            for index in range(bin_count):
                wanted = naive_histograms.quantile_mean(held, index / bin_count, (index + 1) / bin_count, 2000)
                assert found[index, 1] == pytest.approx(wanted, rel=0.01)


def test_bins_out_of_order_are_sorted() -> None:
    odd = TimeHistogram(4, 3.0, 2.0, 1.0, -5.0, (TimeBin(2, 3.0, 2.0, 2.5), TimeBin(2, 1.0, 2.0, 0.5)))
    check(extrapolate_histogram(COUNTS, [odd] * 4, 64, 9)[0], 9)


@pytest.mark.slow
def test_ten_thousand_histograms_stay_near_the_measured_mean() -> None:
    generator = np.random.default_rng(6)
    parts = [
        compute_histograms(generator.lognormal(-8.0, 1.0, 2000 * n), np.repeat(np.arange(2000), n), 2000)
        for n in COUNTS
    ]
    found = extrapolate_histograms(COUNTS, list(zip(*parts, strict=True)), 10_000, [10_000] * 2000)
    for histogram, _ in found[::100]:
        check(histogram, 10_000)
    measured = np.mean([part.mean_s for each in parts for part in each])
    assert np.mean([histogram.mean_s for histogram, _ in found]) == pytest.approx(measured, rel=0.15)


# ---- real times


@pytest.mark.parametrize("application", ["ios_posix_nn", "ios_strong", "ior_mpiio_chunk"])
def test_times_of_real_runs_are_plausible(shared_data: Path, application: str) -> None:
    """Fits to four rank counts reproduce the measured totals, and stay finite at a thousand times as many ranks."""
    from iosig.warehouse.sources.recorder.signatures import open_signed_run, select_outer_calls

    per_function: list[dict[str, list[float]]] = []
    for count in COUNTS:
        durations: dict[str, list[float]] = {}
        with open_signed_run(shared_data / "recorder" / application / str(count) / "raw.tar.zst") as run:
            for rank in run.ranks:
                found = select_outer_calls(run.decode(rank))
                names = found.signatures["function"].gather(found.order).to_list()
                for name, duration in zip(names, (found.end_s - found.start_s).tolist(), strict=True):
                    durations.setdefault(name, []).append(duration)
        per_function.append(durations)
    names = sorted(set.intersection(*map(set, per_function)))
    parts = [[of(durations[name]) for durations in per_function] for name in names]
    most = [max(part.mean_s for part in field) for field in parts]
    for at, factor in ((16, 1.2), (24_000, 1000.0)):
        found = extrapolate_histograms(COUNTS, parts, at, [7] * len(names))
        for (histogram, _), limit in zip(found, most, strict=True):
            check(histogram, 7)
            assert histogram.mean_s <= factor * limit
