"""Work items give the same results in the same order for any number of processes."""

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


def test_empty_input_returns_no_results() -> None:
    assert map_work_items(double, []) == []
