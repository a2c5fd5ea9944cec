from __future__ import annotations

import pytest

from bench.machines import covered_s, makespan_s

PIECES = [(0, "a 2026-03-03", 4.0), (0, "a 2026-03-04", 3.0), (0, "a 2026-03-05", 2.0), (1, "b", 5.0)]


@pytest.mark.parametrize(("worker_count", "expected_s"), [(1, 14.0), (2, 10.0), (3, 9.0), (99, 9.0)])
def test_a_work_waits_for_the_one_before_and_a_free_worker_takes_the_next(worker_count: int, expected_s: float) -> None:
    assert makespan_s(PIECES, worker_count) == expected_s


def test_no_pieces_take_no_time() -> None:
    assert makespan_s([], 4) == 0.0


@pytest.mark.parametrize(
    ("spans", "expected_s"),
    [([], 0.0), ([(3, 4), (0, 1), (0.5, 2)], 3.0), ([(0, 9), (1, 2), (8, 10)], 10.0), ([(0, 1), (1, 2)], 2.0)],
)
def test_seconds_that_several_spans_cover_count_once(spans: list[tuple[float, float]], expected_s: float) -> None:
    assert covered_s(spans) == expected_s
