"""Bottleneck requests: the planted one, its bounds, streams in any pieces, and the naive twin."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings, strategies as st

from iosig.studies.networks.planted import PLANTED, Planted, SystemShape, drawn_shape, drawn_system, planted_requests
from iosig.transforms.networks import bottlenecks
from iosig.transforms.networks.bottlenecks import BOTTLENECK_ROWS, BottleneckFinder
from tests.budget import examples
from tests.naive.networks import bottlenecks as naive


def found(values: list[float], process_count: int | None = None, most_count: int = 10) -> pl.DataFrame:
    finder = BottleneckFinder(most_count, process_count)
    finder.add("size", np.array(values, dtype=float), np.arange(len(values)))
    return finder.result()


def test_one_huge_request_among_equal_ones() -> None:
    rows = found([1024.0] * 500 + [1024.0 * 512] + [1024.0] * 499)
    assert rows.schema == BOTTLENECK_ROWS
    row = rows.row(0, named=True)
    assert (row["metric"], row["bottleneck"], row["request"], row["value"]) == ("size", 0, 500, 524288.0)
    assert row["median_value"] == pytest.approx(1024 * 2**0.125, rel=0.001)
    # nine octaves above, and a bin of a quarter is the least deviation
    assert row["score"] == pytest.approx((9 - 0.125) / 0.25, rel=0.001)
    assert row["share_ratio"] == pytest.approx(512 / 1511)
    assert rows.height == 1


def test_what_is_no_bottleneck() -> None:
    assert found([]).is_empty()
    assert found([7.0]).is_empty()
    assert found([0.0, -1.0, float("nan"), float("inf")]).is_empty()
    assert found([1.0] * 99).is_empty(), "all are alike"
    assert found([1.0] * 99 + [7.0]).is_empty(), "less than eight times the median"
    assert found([1.0] * 10_000 + [64.0]).is_empty(), "less than a hundredth of all"
    assert found([1.0] * 100 + [64.0] * 5).is_empty(), "a twentieth of the requests is not rare"
    spread = (2.0 ** np.random.default_rng(1).normal(0, 2, 300)).tolist()
    assert found([*spread, 2.0**7]).is_empty(), "others are nearly as long"
    assert found([1.0] * 100 + [64.0] * 100 + [128.0]).is_empty(), "the larger ones of two sizes are as usual"
    assert found([1.0] * 100 + [64.0] * 100 + [2.0**12])["request"].to_list() == [200], "nor do two sizes hide one"


def test_with_the_processes_known_a_request_matters_that_outweighs_one_of_them() -> None:
    values = [1.0] * 10_000 + [64.0]
    assert found(values, process_count=1000)["request"].to_list() == [10_000]
    assert found(values, process_count=100).is_empty()
    # of few processes none has to have moved a half
    assert found([1.0] * 100 + [64.0], process_count=1)["request"].to_list() == [100]


def test_ties_go_by_request_and_the_highest_are_kept() -> None:
    values = [1.0] * 5000 + [900.0] * 8 + [1000.0]
    assert found(values, most_count=3)["request"].to_list() == [5008, 5000, 5001]
    finder = BottleneckFinder(3)
    order = np.random.default_rng(2).permutation(len(values))
    for piece in np.array_split(order, 7):
        finder.add("time", np.array(values)[piece], piece)
    rows = finder.result()
    assert rows["request"].to_list() == [5008, 5000, 5001]
    assert rows["bottleneck"].to_list() == [0, 1, 2]
    assert rows["metric"].unique().to_list() == ["time"]


def test_metrics_are_told_apart_in_their_order() -> None:
    finder = BottleneckFinder()
    values = np.array([1.0] * 200 + [500.0])
    finder.add("size", values, np.arange(201))
    finder.add("time", values[::-1], np.arange(201))
    assert finder.result().select("metric", "request").rows() == [("time", 0), ("size", 200)]


def test_the_largest_floats_have_a_sum() -> None:
    row = found([1e300] * 500 + [1.7e308]).row(0, named=True)
    assert row["share_ratio"] == pytest.approx(1.7e308 / 2 / (1.7e308 / 2 + 250e300))


def test_misuse() -> None:
    with pytest.raises(ValueError, match="one process"):
        BottleneckFinder(process_count=0)
    with pytest.raises(ValueError, match="values are not of"):
        BottleneckFinder().add("size", np.ones(3), np.arange(2))
    with pytest.raises(ValueError, match="no metric"):
        BottleneckFinder().add("weight", np.ones(3), np.arange(3))  # type: ignore[arg-type]


@st.composite
def streams(draw: st.DrawFn) -> tuple[list[float], list[int]]:
    usual = draw(st.lists(st.sampled_from([3.0, 5.5, 9.0, 0.0, float("nan")]), min_size=1, max_size=250))
    huge = draw(st.lists(st.floats(1.0, 1e9), max_size=3))
    values = draw(st.permutations(usual + huge)) if len(usual) < 60 else usual + huge
    return list(values), draw(st.lists(st.integers(0, len(values)), max_size=4).map(sorted))


@settings(max_examples=examples(60), deadline=None)
@given(streams(), st.sampled_from([None, 1, 4, 100]), st.integers(1, 4))
def test_streams_in_any_pieces_equal_the_naive_twin(
    stream: tuple[list[float], list[int]], process_count: int | None, most_count: int
) -> None:
    values, cuts = stream
    finder = BottleneckFinder(most_count, process_count)
    request = np.arange(len(values))
    for part in np.split(request, cuts):
        finder.add("size", np.array(values)[part], part)
    expected = naive.bottlenecks(values, request.tolist(), most_count, process_count)
    rows = finder.result()
    assert rows["request"].to_list() == [row[0] for row in expected]
    assert rows["value"].to_list() == [row[1] for row in expected]
    assert rows["score"].to_list() == pytest.approx([row[2] for row in expected], rel=1e-6)


@pytest.mark.parametrize("pattern", PLANTED)
def test_planted_bottlenecks_are_found_and_no_others(pattern: Planted) -> None:
    right = 0
    for seed in range(20):
        generator = np.random.default_rng([seed, PLANTED.index(pattern)])
        system = drawn_system(pattern, generator, drawn_shape(generator, 1 << 14))
        finder = BottleneckFinder(process_count=int((system.request_count > 0).sum()))
        wanted = None
        for piece in planted_requests(system, generator):
            finder.add("size", piece.size_bytes, piece.request)
            if system.huge_bytes and piece.request[0] == 0:
                wanted = int(np.argmax(piece.size_bytes))
        got = finder.result()["request"].to_list()
        right += got == ([] if wanted is None else [wanted])
    assert right >= 19


def test_thresholds_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.array([1.0] * 100 + [6.0])
    monkeypatch.setattr(bottlenecks, "_LEAST_OCTAVES", 2.0)
    finder = BottleneckFinder()
    finder.add("time", values, np.arange(101))
    assert finder.result().height == 1


def test_a_shape_is_kept() -> None:
    shape = SystemShape(16, 4, 1, 3)
    assert drawn_system("bottleneck", np.random.default_rng(0), shape).request_count[0] >= 1
