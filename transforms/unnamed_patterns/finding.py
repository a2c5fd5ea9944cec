"""What of traffic that nobody explains comes again, and whose it may be."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from iosig.transforms.arrays import Reals
from iosig.transforms.unnamed_patterns.beside import Presences, Runs, there
from iosig.transforms.unnamed_patterns.doubts import are_of_logged, doubtful
from iosig.transforms.unnamed_patterns.patterns import Found, Pattern, PatternParams
from iosig.transforms.unnamed_patterns.rhythms import without
from iosig.transforms.unnamed_patterns.searching import Search


def find(left_bytes: Reals, interval_s: float, runs: Runs, params: PatternParams | None = None) -> list[Found]:
    """Return the patterns of what is left and whose they may be, in order of bytes.

    left_bytes: bytes in each step, NaN where nothing was measured. runs: those that were there, in steps. What logged
    applications do at even distances in their runs is taken off first. What lies in an application's runs, and is about
    as large as a kind that is surely its, is set aside with that; and so is what lies where a train's next appearance
    is due: contention made it another burst than it was meant to be.
    """
    params = params or PatternParams()
    presences = Presences(runs, len(left_bytes), params.beside.slack_s / interval_s)
    search = Search.of(left_bytes, left_bytes, interval_s, presences, params)
    parts, is_free = search.parts()
    named: list[Found] = []
    for _ in range(params.rounds):
        rhythms = search.rhythms(parts)
        if not rhythms:
            break
        left = search.left_bytes
        for application, rhythm, patterns in sorted(rhythms, key=lambda each: -each[1].evidence):
            own = runs.application == application
            left = without(left, rhythm, runs.started[own], runs.ended[own], params.rhythms)
            named += patterns
        search = Search.of(left_bytes, left, interval_s, presences, params)
        parts, is_free = search.parts()
    found = search.patterns(parts, is_free)
    found += search.constellations(parts, is_free, found)
    slack = params.beside.slack_s / interval_s
    return sorted(_with_doubts([*named, *found], runs, slack, params), key=lambda one: -one.pattern.volume_bytes.sum())


def _with_doubts(found: list[Found], runs: Runs, slack: float, params: PatternParams) -> list[Found]:
    """Return patterns, of which those are unsure that may be no application of their own."""
    own = [place for place, one in enumerate(found) if one.whose.outcome == "unnamed"]
    patterns = [found[place].pattern for place in own]
    counts = np.array([each.burst_count for each in patterns], np.int64)
    is_train = np.array([each.is_train for each in patterns], np.bool_)
    volumes = [each.volume_bytes for each in patterns]
    inexact = np.array([np.median(each.inexact_bytes / each.volume_bytes) for each in patterns])
    is_doubtful = doubtful(volumes, inexact, counts, is_train, params.doubts)
    named = [one for one in found if one.whose.outcome == "named" and one.pattern.burst_count == 1]
    is_doubtful |= np.array([_is_of_logged(each, named, runs, slack, params) for each in patterns], np.bool_)
    for place in np.array(own, np.int64)[is_doubtful].tolist():
        found[place] = replace(found[place], whose=replace(found[place].whose, outcome="unsure"))
    return found


def _is_of_logged(pattern: Pattern, named: list[Found], runs: Runs, slack: float, params: PatternParams) -> bool:
    """Return whether a pattern of single bursts may be strays of others that have a name."""
    if pattern.is_train or pattern.burst_count > 1:
        return False
    _, were_there = there((pattern.started, pattern.ended), runs, slack)
    applications = np.array([one.whose.application for one in named], np.int64)
    volumes = [one.pattern.volume_bytes for one in named]
    return are_of_logged(pattern.volume_bytes, volumes, were_there[applications], params.doubts)
