"""Test values of documents: valid values are returned, and invalid values are named."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from iosig.warehouse.sources.rows.documents import MalformedError, flag, items, members, text


@pytest.mark.parametrize(
    ("read", "value"), [(text, ""), (text, "ä\U0001f4be"), (flag, False), (items, [1]), (members, {"a": None})]
)
def test_valid_value_is_returned(read: Callable[[object, str], object], value: object) -> None:
    assert read(value, "a.b") is value


@pytest.mark.parametrize(
    ("read", "value", "said"),
    [
        (text, 5, "is not text"),
        (text, None, "is not text"),
        (text, "x\ud800", "is not valid Unicode"),
        (flag, 1, "is neither true nor false"),
        (items, {}, "is not a list"),
        (members, [], "is not an object"),
    ],
)
def test_invalid_value_is_named(read: Callable[[object, str], object], value: object, said: str) -> None:
    with pytest.raises(MalformedError, match=rf"^a\.b {said}$"):
        read(value, "a.b")
