"""Bottleneck requests: planted outliers, thresholds, streams in any chunks, and the naive implementation."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings, strategies as st

from iosig.studies.networks.planted import PLANTED, Planted, SystemShape, draw_shape, generate_requests, plant_pattern
from iosig.transforms.networks import bottlenecks
from iosig.transforms.networks.bottlenecks import BOTTLENECK_SCHEMA, BottleneckFinder, BottleneckParams
from tests.budget import examples
from tests.naive.networks import bottlenecks as naive


def find_bottlenecks(values: list[float], process_count: int | None = None, max_count: int = 10) -> pl.DataFrame:
    finder = BottleneckFinder(max_count, process_count)
    finder.add("size", np.array(values, dtype=float), np.arange(len(values)))
    return finder.result()


def test_single_huge_request_is_a_bottleneck() -> None:
    rows = find_bottlenecks([1024.0] * 500 + [1024.0 * 512] + [1024.0] * 499)
    assert rows.schema == BOTTLENECK_SCHEMA
    row = rows.row(0, named=True)
    assert (row["metric"], row["bottleneck"], row["request"], row["value"]) == ("size", 0, 500, 524288.0)
    assert row["median_value"] == pytest.approx(1024 * 2**0.125, rel=0.001)
    # nine octaves above the median, divided by the minimum deviation of a bin
    assert row["score"] == pytest.approx((9 - 0.125) / 0.25, rel=0.001)
    assert row["share_ratio"] == pytest.approx(512 / 1511)
    assert rows.height == 1


def test_unremarkable_requests_are_not_bottlenecks() -> None:
    assert find_bottlenecks([]).is_empty()
    assert find_bottlenecks([7.0]).is_empty()
    assert find_bottlenecks([0.0, -1.0, float("nan"), float("inf")]).is_empty()
    assert find_bottlenecks([1.0] * 99).is_empty(), "all are alike"
    assert find_bottlenecks([1.0] * 99 + [7.0]).is_empty(), "less than eight times the median"
    assert find_bottlenecks([1.0] * 10_000 + [64.0]).is_empty(), "less than a hundredth of all"
    assert find_bottlenecks([1.0] * 100 + [64.0] * 5).is_empty(), "a twentieth of the requests is not rare"
    spread = (2.0 ** np.random.default_rng(1).normal(0, 2, 300)).tolist()
    assert find_bottlenecks([*spread, 2.0**7]).is_empty(), "the spread is wide"
    assert find_bottlenecks([1.0] * 100 + [64.0] * 100 + [128.0]).is_empty(), "the larger of two sizes is typical"
    assert find_bottlenecks([1.0] * 100 + [64.0] * 100 + [2.0**12])["request"].to_list() == [200], (
        "two sizes do not hide an outlier"
    )


def test_minimum_share_is_the_mean_share_of_a_process() -> None:
    values = [1.0] * 10_000 + [64.0]
    assert find_bottlenecks(values, process_count=1000)["request"].to_list() == [10_000]
    assert find_bottlenecks(values, process_count=100).is_empty()
    # the minimum share has an upper limit for few processes
    assert find_bottlenecks([1.0] * 100 + [64.0], process_count=1)["request"].to_list() == [100]


def test_highest_values_are_kept_and_ties_are_broken_by_request() -> None:
    values = [1.0] * 5000 + [900.0] * 8 + [1000.0]
    assert find_bottlenecks(values, max_count=3)["request"].to_list() == [5008, 5000, 5001]
    finder = BottleneckFinder(3)
    order = np.random.default_rng(2).permutation(len(values))
    for piece in np.array_split(order, 7):
        finder.add("time", np.array(values)[piece], piece)
    rows = finder.result()
    assert rows["request"].to_list() == [5008, 5000, 5001]
    assert rows["bottleneck"].to_list() == [0, 1, 2]
    assert rows["metric"].unique().to_list() == ["time"]


def test_metrics_are_separate_and_in_order() -> None:
    finder = BottleneckFinder()
    values = np.array([1.0] * 200 + [500.0])
    finder.add("size", values, np.arange(201))
    finder.add("time", values[::-1], np.arange(201))
    assert finder.result().select("metric", "request").rows() == [("time", 0), ("size", 200)]


def test_sum_of_the_largest_floats_does_not_overflow() -> None:
    row = find_bottlenecks([1e300] * 500 + [1.7e308]).row(0, named=True)
    assert row["share_ratio"] == pytest.approx(1.7e308 / 2 / (1.7e308 / 2 + 250e300))


def test_invalid_arguments_are_rejected() -> None:
    with pytest.raises(ValueError, match="must be positive"):
        BottleneckFinder(process_count=0)
    with pytest.raises(ValueError, match="values for"):
        BottleneckFinder().add("size", np.ones(3), np.arange(2))
    with pytest.raises(ValueError, match="unknown metric"):
        BottleneckFinder().add("weight", np.ones(3), np.arange(3))  # type: ignore[arg-type]


@st.composite
def streams(draw: st.DrawFn) -> tuple[list[float], list[int]]:
    usual = draw(st.lists(st.sampled_from([3.0, 5.5, 9.0, 0.0, float("nan")]), min_size=1, max_size=250))
    huge = draw(st.lists(st.floats(1.0, 1e9), max_size=3))
    values = draw(st.permutations(usual + huge)) if len(usual) < 60 else usual + huge
    return list(values), draw(st.lists(st.integers(0, len(values)), max_size=4).map(sorted))


@settings(max_examples=examples(60), deadline=None)
@given(streams(), st.sampled_from([None, 1, 4, 100]), st.integers(1, 4))
def test_streams_in_any_chunks_match_naive_implementation(
    stream: tuple[list[float], list[int]], process_count: int | None, max_count: int
) -> None:
    values, cuts = stream
    finder = BottleneckFinder(max_count, process_count)
    request = np.arange(len(values))
    for part in np.split(request, cuts):
        finder.add("size", np.array(values)[part], part)
    expected = naive.bottlenecks(values, request.tolist(), max_count, process_count)
    rows = finder.result()
    assert rows["request"].to_list() == [row[0] for row in expected]
    assert rows["value"].to_list() == [row[1] for row in expected]
    assert rows["score"].to_list() == pytest.approx([row[2] for row in expected], rel=1e-6)


@pytest.mark.parametrize("pattern", PLANTED)
def test_planted_bottlenecks_are_found_exactly(pattern: Planted) -> None:
    right = 0
    for seed in range(20):
        generator = np.random.default_rng([seed, PLANTED.index(pattern)])
        system = plant_pattern(pattern, generator, draw_shape(generator, 1 << 14))
        finder = BottleneckFinder(process_count=int((system.request_count > 0).sum()))
        wanted = None
        for piece in generate_requests(system, generator):
            finder.add("size", piece.size_bytes, piece.request)
            if system.huge_bytes and piece.request[0] == 0:
                wanted = int(np.argmax(piece.size_bytes))
        got = finder.result()["request"].to_list()
        right += got == ([] if wanted is None else [wanted])
    assert right >= 19


def test_lower_threshold_finds_more_bottlenecks(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.array([1.0] * 100 + [6.0])
    monkeypatch.setattr(bottlenecks, "PARAMS", BottleneckParams(min_octaves=2.0))
    finder = BottleneckFinder()
    finder.add("time", values, np.arange(101))
    assert finder.result().height == 1


def test_planted_bottleneck_system_has_requests() -> None:
    shape = SystemShape(16, 4, 1, 3)
    assert plant_pattern("bottleneck", np.random.default_rng(0), shape).request_count[0] >= 1
