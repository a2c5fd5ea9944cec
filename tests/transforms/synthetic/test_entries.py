"""Entries: when they are dropped, lost and read, and the naive implementation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from iosig.transforms.arrays import Ints
from iosig.transforms.synthetic.entries import NEVER_US, Changes, Targets, find_lifetimes, mark_observed, read_entries
from tests.budget import examples
from tests.naive.synthetic import entries as naive

S = 1_000_000
CLEANUP_US = 600 * S


def one_entry(*at_s: float) -> Changes:
    at = (np.array(at_s) * S).astype(np.int64)
    return Changes(np.zeros(len(at), np.int64), np.zeros(len(at), np.int64), at)


def make_target(scraped: Ints, *restarted_s: float, looks_s: float = 0.0) -> Targets:
    return Targets([scraped], [(np.array(restarted_s) * S).astype(np.int64)], np.array([round(looks_s * S)]))


def test_idle_entry_is_dropped_at_the_next_cleanup() -> None:
    found = find_lifetimes(one_entry(10, 610), make_target(np.empty(0, np.int64)), CLEANUP_US)
    # The entry is idle for 590 s at 600 s and at 1200 s, and for 890 s at 1500 s.
    assert (found.lifetime.tolist(), found.ended_us.tolist()) == ([0, 0], [1500 * S])


def test_dropped_entry_restarts_at_zero() -> None:
    found = find_lifetimes(one_entry(10, 899, 2000), make_target(np.empty(0, np.int64)), CLEANUP_US)
    assert (found.lifetime.tolist(), found.first.tolist()) == ([0, 0, 1], [0, 2])
    assert found.ended_us.tolist() == [1500 * S, 2700 * S]


def test_restart_loses_unread_counts() -> None:
    changes = one_entry(10, 20, 30)
    targets = make_target(np.array([15, 40]) * S, 25)
    found = find_lifetimes(changes, targets, CLEANUP_US)
    assert found.lifetime.tolist() == [0, 0, 1]
    assert mark_observed(changes, found, targets).tolist() == [True, False, True]
    read = read_entries(changes, found, targets)
    assert (read.lifetime.tolist(), read.change.tolist(), (read.scraped_us // S).tolist()) == ([0, 1], [0, 2], [15, 40])


def test_entries_without_changes_have_no_readings() -> None:
    none = Changes(*(np.empty(0, np.int64) for _ in range(3)))
    found = find_lifetimes(none, make_target(np.array([5])), CLEANUP_US)
    assert read_entries(none, found, make_target(np.array([5]))).lifetime.size == 0


_changes = st.tuples(st.integers(0, 4000), st.integers(0, 2), st.integers(0, 1))
_instants = st.lists(st.integers(0, 4000), unique=True, max_size=40).map(sorted)


@settings(max_examples=examples(100), deadline=None)
@given(
    st.lists(_changes, unique_by=lambda one: one[0], max_size=60),
    st.lists(_instants, min_size=2, max_size=2),
    st.lists(_instants, min_size=2, max_size=2),
    st.integers(0, 150),
)  # fmt: skip
def test_readings_and_losses_match_naive_implementation(
    what: list[tuple[int, int, int]], scraped: list[list[int]], restarted: list[list[int]], looks: int
) -> None:
    # Times of different parity, so that a change, a scrape, a restart and a check never coincide.
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
    found = find_lifetimes(changes, targets, cleanup)
    seen, read = mark_observed(changes, found, targets), read_entries(changes, found, targets)
    for place in range(2):
        own = np.flatnonzero(changes.target == place)
        by_time = own[np.argsort(changes.at_us[own], kind="stable")]
        told, unseen = naive.read(
            [(int(entry[i]), int(changes.at_us[i])) for i in by_time],
            times[place].tolist(), restarts[place].tolist(), 4 * looks + 3, cleanup,
        )  # fmt: skip
        assert {int(by_time[i]) for i in unseen} == set(own[~seen[own]].tolist())
        expected = {(at, number, int(by_time[first]), int(by_time[last])) for at, number, first, last in told}
        of_target = found.target[read.lifetime] == place
        rows = zip(
            read.scraped_us[of_target].tolist(), entry[read.change[of_target]].tolist(),
            found.first[read.lifetime[of_target]].tolist(), read.change[of_target].tolist(), strict=True,
        )  # fmt: skip
        assert set(rows) == expected


def test_lifetimes_end_before_the_upper_limit() -> None:
    found = find_lifetimes(one_entry(1), make_target(np.empty(0, np.int64)), CLEANUP_US)
    assert found.ended_us[0] < NEVER_US


@pytest.mark.parametrize("restarted_s", [(), (5,)])
def test_lifetime_ends_at_the_next_restart(restarted_s: tuple[float, ...]) -> None:
    found = find_lifetimes(one_entry(1), make_target(np.empty(0, np.int64), *restarted_s), CLEANUP_US)
    assert found.ended_us[0] == (5 * S if restarted_s else 900 * S)
