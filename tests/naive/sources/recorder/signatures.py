"""Naive implementation of `iosig.warehouse.sources.recorder.signatures.outer`: call by call, with a stack."""

from __future__ import annotations

from collections.abc import Iterable

Call = tuple[int, str, str, str]


def outer(calls: Iterable[Call]) -> list[int]:
    """Return the places of the outermost calls (level, module, function, arguments), which the program itself made."""
    found: list[int] = []
    open_calls: list[tuple[int, bool]] = []
    for place, (level, module, _, _) in enumerate(calls):
        while open_calls and open_calls[-1][0] >= level:
            open_calls.pop()
        is_own = module == "FTRACE"
        is_within = any(encloses for _, encloses in open_calls)
        if not is_own and not is_within:
            found.append(place)
        open_calls.append((level, not is_own))
    return found


def signed(calls: Iterable[Call]) -> tuple[list[Call], list[int]]:
    """Return the distinct calls in order of first occurrence, and the index of each call among the distinct calls."""
    known: dict[Call, int] = {}
    order = [known.setdefault(call, len(known)) for call in calls]
    return list(known), order
