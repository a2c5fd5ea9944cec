"""How many examples and cases each test tier runs: an eighth by default, all in the long tier."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import pytest
from _pytest.mark import ParameterSet

#: the divisor of a property's number of examples, by the value of IOSIG_TEST_EXAMPLES
_DIVISORS = {"quick": 8, "full": 1}
_MIN_EXAMPLES = 5


def examples(full_count: int) -> int:
    """Return an eighth of the full number of examples, or all of them with IOSIG_TEST_EXAMPLES=full."""
    divisor = _DIVISORS[os.environ.get("IOSIG_TEST_EXAMPLES", "quick")]
    return min(full_count, max(full_count // divisor, _MIN_EXAMPLES))


def one_in(count: int, cases: Iterable[Any], slow: int = 1) -> list[ParameterSet]:
    """Mark parameters by tier: each `count`-th runs by default; of the others each `slow`-th is slow, the rest long."""
    listed = [case if isinstance(case, tuple) else (case,) for case in cases]
    return [pytest.param(*case, marks=_select_marks(index, count, slow)) for index, case in enumerate(listed)]


def _select_marks(index: int, count: int, slow: int) -> list[pytest.MarkDecorator]:
    if index % count == 0:
        return []
    return [pytest.mark.long if index % slow else pytest.mark.slow]
