"""Digits in lines: what lines are but for them, and numbers by their places."""

from __future__ import annotations

import re

import numpy as np
import pytest

from iosig.warehouse.sources.rows import digits
from iosig.warehouse.sources.rows.digits import MARK, Digits, marked, parts


@pytest.mark.parametrize("strip_bytes", [7, 64, 1 << 18])
def test_lines_are_found_alike_but_for_their_digits(monkeypatch: pytest.MonkeyPatch, strip_bytes: int) -> None:
    monkeypatch.setattr(digits, "_STRIP_BYTES", strip_bytes)
    content = b"a 12,-07:?\n\xc3\xa9/9 x0y 00 10\n\n5\n"
    found = Digits()
    for text in (content * 3, content):
        ends, zeros = found.take(text)
        assert ends.tolist() == [place for place, sign in enumerate(text) if sign == ord("\n")]
        assert found.alike[: len(text)].tobytes() == re.sub(rb"[0-9]", b"0", text)
        # at the edge of a strip there may be more of them
        first = {match.start() for match in re.finditer(rb"(?<![0-9])0(?=[0-9])", text)}
        assert first <= set(zeros.tolist())
        assert strip_bytes <= len(text) or first == set(zeros.tolist())
        edges = np.concatenate([[0], ends + 1])
        assert parts(np.frombuffer(text, np.uint8), edges).to_list() == text.splitlines(keepends=True)


def test_numbers_are_read_where_they_end() -> None:
    values = [int("123456789012345678"[:count]) for count in range(1, 19)] + [0, 10**18 - 1]
    text = "".join(f"{value}:" for value in values).encode() + b"\n"
    found = Digits()
    found.take(text)
    lengths = np.array([len(str(value)) for value in values])
    starts, form = np.append(0, np.cumsum(lengths + 1)[:-1]), np.arange(len(values))
    assert found.numbers(starts, form, lengths, lengths).tolist() == values
    assert found.numbers(starts, form, lengths, np.zeros_like(lengths)).tolist() == [0] * len(values)


def test_each_run_of_digits_is_marked_with_its_place() -> None:
    line, places = marked(b"a1b-23.4")
    assert line == f"a{MARK}b-{MARK + 1}.{MARK + 2}".encode()
    assert places == [(1, 2), (4, 6), (7, 8)]
