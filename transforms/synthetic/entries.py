"""Simulate the lifetimes of counter entries: when entries are dropped or reset, and what scrapes see of the entries.

A target drops entries that are unused for a cleanup interval; it checks twice per interval. When its server restarts,
all entries are lost (lprocfs_job_cleanup in lustre/obdclass/lprocfs_jobstats.c). Times are integer microseconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from iosig.transforms.arrays import Bools, Ints, places_of

#: time later than any other [us], about half a year
NEVER_US = 1 << 44


@dataclass(frozen=True, slots=True)
class Changes:
    """Changes of entries (n), sorted by entry and time: entry, its target, and time [us]."""

    entry: Ints
    target: Ints
    at_us: Ints


@dataclass(frozen=True, slots=True)
class Targets:
    """Times of scrapes, restarts and the first cleanup of each target [us]."""

    scraped_us: Sequence[Ints]
    restarted_us: Sequence[Ints]
    looks_us: Ints


@dataclass(frozen=True, slots=True)
class Lifetimes:
    """Lifetimes of entries: index of each change's lifetime (n); first change, target and end [us] of each lifetime."""

    lifetime: Ints
    first: Ints
    target: Ints
    ended_us: Ints


@dataclass(frozen=True, slots=True)
class Readings:
    """Readings by scrapes (m): lifetime of the entry, last change before the scrape, and time of the scrape."""

    lifetime: Ints
    change: Ints
    scraped_us: Ints


def find_lifetimes(changes: Changes, targets: Targets, cleanup_us: int) -> Lifetimes:
    """Find the lifetimes of entries.

    Parameters
    ----------
    changes
        Changes of entries.
    targets
        Scrapes, restarts and cleanups.
    cleanup_us
        Cleanup interval [us].

    Returns
    -------
    Lifetimes
        Lifetimes; an entry starts a new one after it was dropped or its server restarted.
    """
    half_us, looks_us = cleanup_us // 2, targets.looks_us[changes.target]
    dropped = looks_us + half_us * ((changes.at_us + cleanup_us - looks_us) // half_us + 1)
    restarts = _encode_all(targets.restarted_us)
    restart_count = np.searchsorted(restarts, _encode(changes.target, changes.at_us))
    is_new = np.ones(len(changes.entry), dtype=np.bool_)
    is_new[1:] = (
        (changes.entry[1:] != changes.entry[:-1])
        | (restart_count[1:] != restart_count[:-1])
        | (changes.at_us[1:] >= dropped[:-1])
    )  # fmt: skip
    first = np.flatnonzero(is_new)
    last = np.append(first[1:], len(is_new))[: len(first)] - 1
    restarted = _decode(restarts, changes.target[last], restart_count[last])
    return Lifetimes(np.cumsum(is_new) - 1, first, changes.target[first], np.minimum(dropped[last], restarted))


def mark_observed(changes: Changes, lifetimes: Lifetimes, targets: Targets) -> Bools:
    """Mark the changes (n) that a scrape observed before the end of their lifetime."""
    scrapes = _encode_all(targets.scraped_us)
    position = np.searchsorted(scrapes, _encode(changes.target, changes.at_us))
    is_observed: Bools = _decode(scrapes, changes.target, position) < lifetimes.ended_us[lifetimes.lifetime]
    return is_observed


def read_entries(changes: Changes, lifetimes: Lifetimes, targets: Targets) -> Readings:
    """List the readings of all entries by scrapes, lifetime by lifetime.

    Parameters
    ----------
    changes
        Changes of entries.
    lifetimes
        Result of `find_lifetimes`.
    targets
        Scrapes of each target.

    Returns
    -------
    Readings
        One row per lifetime and scrape within it.
    """
    scrapes = _encode_all(targets.scraped_us)
    begin = np.searchsorted(scrapes, _encode(lifetimes.target, changes.at_us[lifetimes.first]))
    end = np.searchsorted(scrapes, _encode(lifetimes.target, np.minimum(lifetimes.ended_us, NEVER_US - 1)))
    lifetime = np.repeat(np.arange(len(lifetimes.first)), end - begin)
    scraped_us = scrapes[places_of(begin, end - begin)] % NEVER_US
    change = (
        np.searchsorted(_encode(lifetimes.lifetime, changes.at_us), _encode(lifetime, scraped_us), side="right") - 1
    )
    return Readings(lifetime, change, scraped_us)


def _encode(owner: Ints, at_us: Ints) -> Ints:
    """Encode owners and times as integers that sort by owner, then by time."""
    return owner * NEVER_US + at_us


def _encode_all(times: Sequence[Ints]) -> Ints:
    return np.concatenate(
        [np.empty(0, np.int64), *(_encode(np.full(1, owner), owner_us) for owner, owner_us in enumerate(times))]
    )


def _decode(coded: Ints, owner: Ints, position: Ints) -> Ints:
    """Decode the time at a position; NEVER_US if it belongs to another owner."""
    codes = np.append(coded, NEVER_US * (1 << 18))[position]
    return np.where(codes // NEVER_US == owner, codes % NEVER_US, NEVER_US)
