"""Pieces of work are done in any number of processes, with the same results in the same order."""

from __future__ import annotations

import pytest

from iosig.studies.work_items import map_work_items


def double(value: int) -> int:
    return 2 * value


@pytest.mark.parametrize("workers", [1, 2, None])
def test_results_are_in_order(workers: int | None) -> None:
    told: list[tuple[int, int]] = []
    found = map_work_items(double, [3, 1, 2], workers, lambda done, count: told.append((done, count)), [1, 5, 2])
    assert found == [6, 2, 4]
    assert len(told) == 3
    assert told[-1] == (8, 8)


def test_no_work_is_done_at_once() -> None:
    assert map_work_items(double, []) == []
