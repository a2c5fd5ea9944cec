"""Lists and spans of ranks are parsed from text."""

from __future__ import annotations

import pytest

from iosig.traces.extrapolation.view import spans
from iosig.warehouse.errors import UsageError


def test_numbers_and_spans_keep_their_order() -> None:
    assert spans("3", 8) == (range(3, 4),)
    assert spans("5-7, 0,1-1", 8) == (range(5, 8), range(1), range(1, 2))


@pytest.mark.parametrize("text", ["", "a", "3-1", "1-", "-1", "1,,2", "0x1", "1" * 20, "²"])
def test_invalid_text_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not a rank or range"):
        spans(text, 8)


@pytest.mark.parametrize("text", ["8", "0-8", "0-9999999999"])
def test_ranks_beyond_the_trace_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="has the ranks 0 to 7"):
        spans(text, 8)
