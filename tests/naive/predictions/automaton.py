"""Naive implementation of `iosig.transforms.predictions.automaton`, from the list of all evaluations."""

from __future__ import annotations

import math
from collections.abc import Sequence

Event = tuple[float, float | None, str | None]
Transition = tuple[str, str, str, float, float]


def alike(one: float | None, other: float | None, tolerance: float) -> bool:
    """Whether two periods agree within the tolerance, or both are missing."""
    if one is None or other is None:
        return one is None and other is None
    return one <= tolerance * other and other <= tolerance * one


def geometric_mean(values: Sequence[float]) -> float | None:
    """Geometric mean, clipped to the range of the values against rounding; None of no values."""
    if not values:
        return None
    return min(max(math.prod(value ** (1 / len(values)) for value in values), min(values)), max(values))


def run_at_the_end(waiting: Sequence[Event], tolerance: float) -> list[Event]:
    """Last agreeing evaluations; a detected change or a deviation from the first of them starts a new run."""
    run: list[Event] = []
    for event in waiting:
        if event[2] == "change_point" or not run or not alike(event[1], run[0][1], tolerance):
            run = []
        run.append(event)
    return run


def target_of(mean: float | None, states: Sequence[tuple[str, float]], tolerance: float) -> str:
    """Nearest state within the tolerance, or the next new state."""
    if mean is None:
        return "aperiodic"
    near = [
        (abs(math.log(own / mean)), int(name.split("_")[1]), name)
        for name, own in states
        if alike(own, mean, tolerance)
    ]
    return min(near)[2] if near else f"period_{len(states) + 1}"


def cause_of(mean: float | None, known: float | None, was_found: bool, has_fired: bool) -> str:
    """Cause of the transition from a state to another."""
    if mean is None:
        return "none_found" if known is None else "period_lost"
    if known is None:
        return "found_again" if was_found else "first_found"
    return ("change_point" if has_fired else "shift") + ("_up" if mean > known else "_down")


def transitions(events: Sequence[Event], hold_count: int, hold_cycles: float, tolerance: float) -> list[Transition]:
    """All transitions of a run as (source, target, cause, at, known), without a limit of states."""
    result: list[Transition] = []
    states: list[tuple[str, float]] = []
    current, waiting = "start", list[Event]()

    def period_of(name: str) -> float | None:
        return dict(states).get(name)

    for event in events:
        at, period, said = event
        if said in ("gap", "end"):
            if said != current:
                result.append((current, said, said, at, at))
            current, waiting = said, []
            continue
        waiting.append(event)
        has_fired = any(each[2] == "change_point" for each in waiting)
        known = period_of(current)
        is_same = alike(period, known, tolerance) and (known is not None or current == "aperiodic")
        if is_same and not has_fired:
            waiting = []
            continue
        run = run_at_the_end(waiting, tolerance)
        values = [each[1] for each in run if each[1] is not None]
        mean = geometric_mean(values)
        cycle = mean or known or 0.0
        if len(run) < hold_count or at - run[0][0] < hold_cycles * cycle:
            continue
        waiting = []
        target = target_of(mean, states, tolerance)
        if target == current:
            continue
        cause = cause_of(mean, known, bool(states), has_fired)
        if mean is not None and target not in dict(states):
            states.append((target, mean))
        result.append((current, target, cause, run[0][0], at))
        current = target
    return result
