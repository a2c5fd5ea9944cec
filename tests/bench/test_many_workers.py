"""What more workers would come to: tasks of what was measured, and how long they take."""

from __future__ import annotations

from typing import Any

import pytest

from bench.many_workers import Span, Task, covered_s, makespan_s, of_larger, simulated, tasks

A, B, LAST = (Task(order, name, "whole", 5.0) for order, name in enumerate(("a", "b", "last")))
DAYS = [Task(0, f"a 2026-03-0{day}", "day", float(6 - day)) for day in (2, 3, 4)]
OWN = "0" * 32


@pytest.mark.parametrize(("worker_count", "expected_s"), [(1, 14.0), (2, 10.0), (3, 9.0), (99, 9.0)])
def test_a_work_waits_for_the_one_before_and_a_free_worker_takes_the_next(worker_count: int, expected_s: float) -> None:
    assert makespan_s([*DAYS, B], worker_count) == expected_s


@pytest.mark.parametrize(
    ("checks_s", "worker_count", "expected_s"),
    [
        # beside the next work, where a worker is free
        ([3.0], 2, 15.0),
        # where none is, after it: the last one waits
        ([3.0], 1, 18.0),
        ([7.0, 7.0], 3, 17.0),
        ([7.0, 7.0], 2, 22.0),
    ],
)
def test_tables_are_checked_where_nothing_waits_and_before_the_last_work(
    checks_s: list[float], worker_count: int, expected_s: float
) -> None:
    night = [A, *(Task(0, "check a", "check", seconds) for seconds in checks_s), B, LAST]
    assert makespan_s(night, worker_count) == expected_s


def test_a_work_that_is_only_checked_holds_nothing_up() -> None:
    assert makespan_s([Task(0, "check a", "check", 2.0), B, LAST], 2) == 10.0


def test_no_tasks_take_no_time() -> None:
    assert makespan_s([], 4) == 0.0


@pytest.mark.parametrize(
    ("spans", "expected_s"),
    [([], 0.0), ([(3, 4), (0, 1), (0.5, 2)], 3.0), ([(0, 9), (1, 2), (8, 10)], 10.0), ([(0, 1), (1, 2)], 2.0)],
)
def test_seconds_that_several_spans_cover_count_once(spans: list[tuple[float, float]], expected_s: float) -> None:
    assert covered_s(spans) == expected_s


def test_what_a_piece_hands_on_is_told_apart_from_its_own_time() -> None:
    spans = [
        Span("Call(root)", 0, 2),
        Span(f"a 2026-03-02-{OWN}", 3, 4),
        Span(f"signatures-{OWN}", 5, 15),
        Span(f"check a-{OWN}", 5, 6),
        Span("Call(root)", 6, 10),
        Span("Call(root)", 8, 14),
    ]
    assert tasks(spans, ["a", "signatures"]) == [
        Task(-1, "landing", "call", 2),
        Task(0, "a 2026-03-02", "day", 1),
        Task(0, "check a", "check", 1),
        Task(1, "signatures", "whole", 2),
        Task(1, "part of signatures", "call", 4),
        Task(1, "part of signatures", "call", 6),
    ]


def test_a_larger_site_has_longer_days_and_more_of_what_is_handed_on() -> None:
    call, check = Task(0, "part of a", "call", 1.0), Task(0, "check a", "check", 1.0)
    found = of_larger([*DAYS, call, check, B], 2, 10)

    def told(kind: str) -> list[Any]:
        return [task.duration_s for task in found if task.kind == kind]

    assert told("day") == [40.0, 30.0, 20.0] * 2
    assert (told("call"), told("check"), told("whole")) == ([1.0] * 20, [20.0], [100.0])
    assert [task.order for task in found] == sorted(task.order for task in found)


def test_what_was_measured_is_simulated_beside_its_wall() -> None:
    first, *others = simulated([*DAYS, B], 3, 12.5)
    assert (first.ours, first.peer, first.ratio) == ("10.0 s", "12.5 s", "0.80")
    assert [figure.ours for figure in others if "longest" in figure.name] == ["150.0 s", "1,500.0 s"]
