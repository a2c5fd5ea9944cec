"""The order among ranks: which collective calls of MPI they wait for one another at, and whether that can go on.

Without MPI, a collective call is a barrier among the replayed ranks of its communicator. A communicator's members
are the ranks that make collective calls on it; Recorder gives one the same id (`<world rank>-<counter>`) on all of
its ranks. It is waited on only if all members come equally often, and the world only if every replayed rank does;
and only if, played through beforehand, no rank waits for ever.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from iosig.traces.replay.functions import Verb
from iosig.traces.replay.scripts import Script

WORLD = "MPI_COMM_WORLD"


@dataclass(frozen=True, slots=True)
class Visits:
    """The communicators by name, and those that ranks come to in order, by number; ranks with the same are together."""

    communicators: tuple[str, ...]
    order: bytes
    ranks: tuple[int, ...]

    def numbers(self) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
        """Return the numbers of the communicators in order."""
        return np.frombuffer(self.order, np.int32)


@dataclass(frozen=True, slots=True)
class Order:
    """The communicators that ranks wait on, by name: how many members each has, and its first rank.

    ignored: those that are not waited on, and why.
    """

    members: dict[str, int]
    leaders: dict[str, int]
    ignored: dict[str, str]
    ranks: dict[str, frozenset[int]]


def visits(scripts: Iterable[Script]) -> list[Visits]:
    """Return where the ranks of these scripts come, ranks with the same together."""
    found: defaultdict[tuple[tuple[str, ...], bytes], list[int]] = defaultdict(list)
    for script in scripts:
        synced = script.steps[script.steps["verb"] == int(Verb.SYNC)]["size"]
        found[script.communicators, synced.astype(np.int32).tobytes()].append(script.rank)
    return [Visits(communicators, order, tuple(ranks)) for (communicators, order), ranks in found.items()]


def ordered(parts: Iterable[Visits], rank_count: int) -> Order:
    """Return which communicators the ranks wait on."""
    groups = list(parts)
    members: defaultdict[str, set[int]] = defaultdict(set)
    times: defaultdict[str, set[int]] = defaultdict(set)
    for group in groups:
        for number, count in Counter(group.numbers().tolist()).items():
            members[group.communicators[number]].update(group.ranks)
            times[group.communicators[number]].add(count)
    ignored = {name: "its ranks come a different number of times" for name in times if len(times[name]) > 1}
    if WORLD in members and len(members[WORLD]) != rank_count:
        ignored[WORLD] = "not every rank that is replayed makes these calls"
    kept = [name for name in members if name not in ignored]
    if not _goes_on(groups, set(kept)):
        ignored |= dict.fromkeys(kept, "the ranks would wait for one another for ever")
        kept = []
    return Order(
        {name: len(members[name]) for name in kept},
        {name: min(members[name]) for name in kept},
        ignored,
        {name: frozenset(members[name]) for name in kept},
    )


def _goes_on(groups: list[Visits], kept: set[str]) -> bool:
    """Return whether all ranks get through: play the ranks with the same order as one."""
    paths = [
        [group.communicators[number] for number in group.numbers().tolist() if group.communicators[number] in kept]
        for group in groups
    ]
    needed = Counter(name for path in paths for name in set(path))
    at = [0] * len(paths)
    waiting: defaultdict[str, list[int]] = defaultdict(list)
    ready = list(range(len(paths)))
    while ready:
        group = ready.pop()
        if at[group] == len(paths[group]):
            continue
        name = paths[group][at[group]]
        waiting[name].append(group)
        if len(waiting[name]) == needed[name]:
            released = waiting.pop(name)
            for one in released:
                at[one] += 1
            ready += released
    return all(place == len(path) for place, path in zip(at, paths, strict=True))
