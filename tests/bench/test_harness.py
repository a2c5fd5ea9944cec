"""The harness measures alternatives in alternation, and its rows report whether limits hold."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from bench.harness import (
    BENCHMARKS,
    Comparison,
    Context,
    Cost,
    alternate,
    call_cost,
    compare_alternatives,
    process_cost,
    ratio_text,
)


def costs(*seconds: float) -> list[Cost]:
    return [Cost(taken, taken / 2, 3_000_000) for taken in seconds]


def test_alternatives_alternate_after_a_warm_up() -> None:
    calls: list[str] = []

    def measure(name: str) -> Cost:
        calls.append(name)
        return Cost(float(len(calls)), 0.0)

    ours, peer = alternate([lambda: measure("ours"), lambda: measure("peer")], 2)
    assert calls == ["ours", "peer"] * 3
    assert [cost.wall_s for cost in ours] == [3.0, 5.0]
    assert [cost.wall_s for cost in peer] == [4.0, 6.0]


def test_row_has_median_range_and_ratio() -> None:
    row = Comparison("sort", max_ratio=0.5).row(costs(1.0, 2.0, 9.0), costs(4.0))
    assert row.markdown == "| sort | 2 s [1 s to 9 s] | 4 s | 0.5 | 0.5 of the peer | yes |"
    assert not Comparison("sort", max_ratio=0.4).row(costs(2.0), costs(4.0)).holds


@pytest.mark.parametrize(
    ("comparison", "limit", "holds"),
    [
        (Comparison("", max_value=2.0), "2 s", True),
        (Comparison("", max_value=1.9), "1.9 s", False),
        (Comparison("", "cpu_s", max_value=1.0), "1 s", True),
        (Comparison("", "peak_bytes", max_value=2e6), "2 MB", False),
        (Comparison("", max_ratio=1.0, allowance=1.0), "1 of the peer + 1 s", True),
        (Comparison("", count=100, unit="calls", min_rate=50), "50 calls/s", True),
        (Comparison("", count=100, unit="calls", min_rate=51), "51 calls/s", False),
    ],
)
def test_row_reports_whether_the_limit_holds(comparison: Comparison, limit: str, holds: bool) -> None:
    row = comparison.row(costs(2.0), costs(1.0))
    assert (row.limit, row.holds) == (limit, holds)


def test_additional_measures_use_the_same_runs() -> None:
    rows = list(
        compare_alternatives(Comparison("a"), lambda: Cost(1, 2), lambda: Cost(2, 2), 1, Comparison("b", "cpu_s"))
    )
    assert [(row.name, row.ratio) for row in rows] == [("a", "0.5"), ("b", "1")]


@pytest.mark.parametrize(("ratio", "text"), [(2.5, "2.5"), (0.5, "0.5"), (0.25, "1/4"), (0.007, "1/143")])
def test_small_ratios_are_formatted_as_fractions(ratio: float, text: str) -> None:
    assert ratio_text(ratio) == text


def test_processes_are_measured_and_failures_raise() -> None:
    cost = process_cost([sys.executable, "-c", "bytearray(50_000_000)"])
    assert cost.wall_s > 0
    assert cost.peak_bytes > 50_000_000
    with pytest.raises(RuntimeError, match="ended with 3: no such thing"):
        process_cost([sys.executable, "-c", "import sys; print('no such thing', file=sys.stderr); sys.exit(3)"])


def test_calls_are_measured_and_scaled() -> None:
    cost = call_cost(lambda: sum(range(1_000_000)))
    assert cost.cpu_s > 0
    assert cost.scale(2).wall_s == 2 * cost.wall_s


def test_fresh_folder_is_empty(tmp_path: Path) -> None:
    context = Context(tmp_path, tmp_path, 1)
    (context.fresh("a") / "file").touch()
    assert list(context.fresh("a").iterdir()) == []


def test_every_benchmark_is_described() -> None:
    import bench.__main__  # noqa: F401  (registers benchmarks)

    assert len(BENCHMARKS) > 10
    assert [name for name, each in BENCHMARKS.items() if not each.doc] == []
