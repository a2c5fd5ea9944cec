"""Entries: when they are dropped, lost and read, and the naive twin."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from iosig.transforms.arrays import Ints
from iosig.transforms.synthetic.entries import NEVER_US, Changes, Targets, are_seen, lives, readings
from tests.budget import examples
from tests.naive.synthetic import entries as naive

S = 1_000_000
CLEANUP_US = 600 * S


def one_entry(*at_s: float) -> Changes:
    at = (np.array(at_s) * S).astype(np.int64)
    return Changes(np.zeros(len(at), np.int64), np.zeros(len(at), np.int64), at)


def target(scraped: Ints, *restarted_s: float, looks_s: float = 0.0) -> Targets:
    return Targets([scraped], [(np.array(restarted_s) * S).astype(np.int64)], np.array([round(looks_s * S)]))


def test_an_entry_stays_until_the_server_looks_and_finds_it_idle_for_longer_than_the_interval() -> None:
    found = lives(one_entry(10, 610), target(np.empty(0, np.int64)), CLEANUP_US)
    # at 600 s it is idle for 590, at 1200 for 590, at 1500 for 890
    assert (found.life.tolist(), found.ended_us.tolist()) == ([0, 0], [1500 * S])


def test_an_entry_that_comes_back_after_it_was_dropped_begins_anew() -> None:
    found = lives(one_entry(10, 899, 2000), target(np.empty(0, np.int64)), CLEANUP_US)
    assert (found.life.tolist(), found.first.tolist()) == ([0, 0, 1], [0, 2])
    assert found.ended_us.tolist() == [1500 * S, 2700 * S]


def test_a_restart_ends_all_and_what_was_not_read_before_is_lost() -> None:
    changes = one_entry(10, 20, 30)
    targets = target(np.array([15, 40]) * S, 25)
    found = lives(changes, targets, CLEANUP_US)
    assert found.life.tolist() == [0, 0, 1]
    assert are_seen(changes, found, targets).tolist() == [True, False, True]
    read = readings(changes, found, targets)
    assert (read.life.tolist(), read.change.tolist(), (read.scraped_us // S).tolist()) == ([0, 1], [0, 2], [15, 40])


def test_nothing_is_read_where_nothing_counted() -> None:
    none = Changes(*(np.empty(0, np.int64) for _ in range(3)))
    found = lives(none, target(np.array([5])), CLEANUP_US)
    assert readings(none, found, target(np.array([5]))).life.size == 0


_changes = st.tuples(st.integers(0, 4000), st.integers(0, 2), st.integers(0, 1))
_instants = st.lists(st.integers(0, 4000), unique=True, max_size=40).map(sorted)


@settings(max_examples=examples(100), deadline=None)
@given(
    st.lists(_changes, unique_by=lambda one: one[0], max_size=60),
    st.lists(_instants, min_size=2, max_size=2),
    st.lists(_instants, min_size=2, max_size=2),
    st.integers(0, 150),
)  # fmt: skip
def test_what_is_read_and_lost_equals_the_naive_twin(
    what: list[tuple[int, int, int]], scraped: list[list[int]], restarted: list[list[int]], looks: int
) -> None:
    # times that differ by parity: a change, a scrape, a restart and a look never fall on one instant
    cleanup = 4 * 300
    changed = sorted((place, entry, 4 * at) for at, entry, place in what)
    changed.sort(key=lambda one: (one[0], one[1], one[2]))
    entry = np.array([place * 3 + number for place, number, _ in changed], np.int64)
    changes = Changes(
        entry, np.array([p for p, _, _ in changed], np.int64), np.array([a for _, _, a in changed], np.int64)
    )
    times = [np.array([4 * at + 1 for at in own], np.int64) for own in scraped]
    restarts = [np.array([4 * at + 2 for at in own], np.int64) for own in restarted]
    targets = Targets(times, restarts, np.full(2, 4 * looks + 3))
    found = lives(changes, targets, cleanup)
    seen, read = are_seen(changes, found, targets), readings(changes, found, targets)
    for place in range(2):
        own = np.flatnonzero(changes.target == place)
        by_time = own[np.argsort(changes.at_us[own], kind="stable")]
        told, unseen = naive.read(
            [(int(entry[i]), int(changes.at_us[i])) for i in by_time],
            times[place].tolist(), restarts[place].tolist(), 4 * looks + 3, cleanup,
        )  # fmt: skip
        assert {int(by_time[i]) for i in unseen} == set(own[~seen[own]].tolist())
        expected = {(at, number, int(by_time[first]), int(by_time[last])) for at, number, first, last in told}
        of_target = found.target[read.life] == place
        rows = zip(
            read.scraped_us[of_target].tolist(), entry[read.change[of_target]].tolist(),
            found.first[read.life[of_target]].tolist(), read.change[of_target].tolist(), strict=True,
        )  # fmt: skip
        assert set(rows) == expected


def test_times_beyond_what_is_told_apart_are_none() -> None:
    found = lives(one_entry(1), target(np.empty(0, np.int64)), CLEANUP_US)
    assert found.ended_us[0] < NEVER_US


@pytest.mark.parametrize("restarted_s", [(), (5,)])
def test_an_entry_lives_no_longer_than_until_the_next_restart(restarted_s: tuple[float, ...]) -> None:
    found = lives(one_entry(1), target(np.empty(0, np.int64), *restarted_s), CLEANUP_US)
    assert found.ended_us[0] == (5 * S if restarted_s else 900 * S)
