"""Seen polls are stored compactly, with a bounded number of entries."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings, strategies as st

from iosig.streams.following import seen_polls
from iosig.streams.following.seen_polls import SeenPolls
from tests.budget import examples


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(st.tuples(st.integers(1, 40), st.integers(1, 7), st.booleans()), max_size=120))
def test_seen_polls_equal_a_plain_mapping(added: list[tuple[int, int, bool]]) -> None:
    seen, naive = SeenPolls(0), dict.fromkeys(range(-2, 50), 0)
    for instant_us, mask, is_restart in added:
        seen.add(instant_us, mask)
        naive[instant_us] |= mask
        if is_restart:
            seen = SeenPolls.from_plain(json.loads(json.dumps(seen.plain())))
    assert {instant_us: seen.at(instant_us) for instant_us in naive} == naive


def test_regular_polls_are_stored_as_one_run_in_any_order() -> None:
    seen = SeenPolls(0)
    for mask in (1, 2, 5):
        for instant_us in range(5, 5005, 5):
            seen.add(instant_us, mask)
    assert seen.plain() == {"floor_us": 0, "masks": ["7"], "runs": [[5, 5, 1000, 0]]}


def test_size_is_bounded_and_forgotten_times_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seen_polls, "MAX_PROGRESSIONS", 10)
    seen = SeenPolls(0)
    for number in range(100):
        seen.add(number**2 + 1, 1 + number % 2)
    assert len(seen.plain()["runs"]) == 10
    assert seen.floor_us == 89**2 + 1
    assert seen.at(90**2 + 1) == 1
