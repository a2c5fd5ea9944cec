from __future__ import annotations

import pytest

from bench.machines import makespan_s

PIECES = [(0, "a 2026-03-03", 4.0), (0, "a 2026-03-04", 3.0), (0, "a 2026-03-05", 2.0), (1, "b", 5.0)]


@pytest.mark.parametrize(("worker_count", "expected_s"), [(1, 14.0), (2, 10.0), (3, 9.0), (99, 9.0)])
def test_a_work_waits_for_the_one_before_and_a_free_worker_takes_the_next(worker_count: int, expected_s: float) -> None:
    assert makespan_s(PIECES, worker_count) == expected_s


def test_no_pieces_take_no_time() -> None:
    assert makespan_s([], 4) == 0.0
