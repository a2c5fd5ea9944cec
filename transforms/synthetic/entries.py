"""Entries of counters: when they live, begin anew at 0 and are read, all of them at once.

A target drops an entry that was not used for the cleanup interval, and looks for such every half interval; when its
server restarts, it loses all (lprocfs_job_cleanup in lustre/obdclass/lprocfs_jobstats.c). Times are whole microseconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from iosig.transforms.arrays import Bools, Ints, places_of

#: beyond all times [us]: half a year and more
NEVER_US = 1 << 44


@dataclass(frozen=True, slots=True)
class Changes:
    """When entries counted something (n), those of one entry in order of time: entry, its target, and when [us]."""

    entry: Ints
    target: Ints
    at_us: Ints


@dataclass(frozen=True, slots=True)
class Targets:
    """Of each target when it was scraped, when it restarted, and when it first looks for entries without use [us]."""

    scraped_us: Sequence[Ints]
    restarted_us: Sequence[Ints]
    looks_us: Ints


@dataclass(frozen=True, slots=True)
class Lives:
    """Entries' lives: of each change (n) its life; of each life its first change, its target and its end [us]."""

    life: Ints
    first: Ints
    target: Ints
    ended_us: Ints


@dataclass(frozen=True, slots=True)
class Readings:
    """What scrapes read: the life, the last change before the scrape, and which of its target's scrapes (m)."""

    life: Ints
    change: Ints
    scraped_us: Ints


def lives(changes: Changes, targets: Targets, cleanup_us: int) -> Lives:
    """Return the lives of entries."""
    half, looks = cleanup_us // 2, targets.looks_us[changes.target]
    dropped = looks + half * ((changes.at_us + cleanup_us - looks) // half + 1)
    restarts = _coded(targets.restarted_us)
    passed = np.searchsorted(restarts, _code(changes.target, changes.at_us))
    is_new = np.ones(len(changes.entry), dtype=np.bool_)
    is_new[1:] = (
        (changes.entry[1:] != changes.entry[:-1])
        | (passed[1:] != passed[:-1])
        | (changes.at_us[1:] >= dropped[:-1])
    )  # fmt: skip
    first = np.flatnonzero(is_new)
    last = np.append(first[1:], len(is_new))[: len(first)] - 1
    restarted = _next(restarts, changes.target[last], passed[last])
    return Lives(np.cumsum(is_new) - 1, first, changes.target[first], np.minimum(dropped[last], restarted))


def are_seen(changes: Changes, found: Lives, targets: Targets) -> Bools:
    """Mark the changes that a scrape saw before the entry's end (n)."""
    scrapes = _coded(targets.scraped_us)
    place = np.searchsorted(scrapes, _code(changes.target, changes.at_us))
    seen: Bools = _next(scrapes, changes.target, place) < found.ended_us[found.life]
    return seen


def readings(changes: Changes, found: Lives, targets: Targets) -> Readings:
    """Return what each scrape read of all lives, life after life."""
    scrapes = _coded(targets.scraped_us)
    begin = np.searchsorted(scrapes, _code(found.target, changes.at_us[found.first]))
    end = np.searchsorted(scrapes, _code(found.target, np.minimum(found.ended_us, NEVER_US - 1)))
    life = np.repeat(np.arange(len(found.first)), end - begin)
    scraped_us = scrapes[places_of(begin, end - begin)] % NEVER_US
    change = np.searchsorted(_code(found.life, changes.at_us), _code(life, scraped_us), side="right") - 1
    return Readings(life, change, scraped_us)


def _code(owner: Ints, at_us: Ints) -> Ints:
    """Return times of several owners as numbers that are in order."""
    return owner * NEVER_US + at_us


def _coded(times: Sequence[Ints]) -> Ints:
    return np.concatenate([np.empty(0, np.int64), *(_code(np.full(1, i), own) for i, own in enumerate(times))])


def _next(coded: Ints, owner: Ints, place: Ints) -> Ints:
    """Return the owner's time at that place; NEVER_US where it has none any more."""
    known = np.append(coded, NEVER_US * (1 << 18))[place]
    return np.where(known // NEVER_US == owner, known % NEVER_US, NEVER_US)
