"""How much is tried while one waits; `.ci/run` tries a third of it, the long tier all."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import pytest
from _pytest.mark import ParameterSet

#: of a property's examples, one in so many is tried: while one waits, in `.ci/run`, and for the long tier
_PARTS = {"quick": 5, "third": 3, "full": 1}
_LEAST = 5


def examples(full_count: int) -> int:
    """Return how many examples to try of a property that deserves so many.

    `IOSIG_TEST_EXAMPLES`: "full" tries all, "third" a third of them, and one in so many without it.
    """
    part = _PARTS[os.environ.get("IOSIG_TEST_EXAMPLES", "quick")]
    return min(full_count, max(full_count // part, _LEAST))


def one_in(count: int, cases: Iterable[Any], slow: int = 1) -> list[ParameterSet]:
    """Return parameters of which one in so many, the first among them, is tried while one waits.

    Of the others one in `slow` is slow, and the rest is long.
    """
    listed = [case if isinstance(case, tuple) else (case,) for case in cases]
    return [pytest.param(*case, marks=_marks(place, count, slow)) for place, case in enumerate(listed)]


def _marks(place: int, count: int, slow: int) -> list[pytest.MarkDecorator]:
    if place % count == 0:
        return []
    return [pytest.mark.long if place % slow else pytest.mark.slow]
