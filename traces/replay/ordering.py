"""Find the MPI collective calls that synchronize ranks, and check them for deadlocks.

Without MPI, a collective call is a barrier among the replayed ranks of its communicator. A communicator's members are
the ranks that make collective calls on it; Recorder gives it the same id (`<world rank>-<counter>`) on all of its
ranks. It synchronizes ranks only if all members arrive equally often, and the world only if every replayed rank does.
If a simulation beforehand finds a deadlock, the communicators that wait for each other's ranks do not synchronize
ranks; the others do.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from iosig.traces.replay.functions import Verb
from iosig.traces.replay.scripts import Script

WORLD = "MPI_COMM_WORLD"


@dataclass(frozen=True, slots=True)
class Visits:
    """A sequence of communicators that some ranks visit: names, numbers in the order of visits, and these ranks."""

    communicators: tuple[str, ...]
    order: bytes
    ranks: tuple[int, ...]

    def numbers(self) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
        """Return the numbers of the communicators in order."""
        return np.frombuffer(self.order, np.int32)


@dataclass(frozen=True, slots=True)
class Order:
    """Communicators that synchronize ranks, by name, with the number of members and the first rank.

    ignored: communicators that are not waited on, with reasons.
    """

    members: dict[str, int]
    leaders: dict[str, int]
    ignored: dict[str, str]
    ranks: dict[str, frozenset[int]]


def visits(scripts: Iterable[Script]) -> list[Visits]:
    """Collect the sequences of visits of these scripts' ranks, grouped by equal sequences."""
    ranks_by_visits: defaultdict[tuple[tuple[str, ...], bytes], list[int]] = defaultdict(list)
    for script in scripts:
        synced = script.steps[script.steps["verb"] == int(Verb.SYNC)]["size"]
        ranks_by_visits[script.communicators, synced.astype(np.int32).tobytes()].append(script.rank)
    return [Visits(communicators, order, tuple(ranks)) for (communicators, order), ranks in ranks_by_visits.items()]


def choose_order(parts: Iterable[Visits], rank_count: int) -> Order:
    """Choose the communicators that synchronize the ranks."""
    groups = list(parts)
    members: defaultdict[str, set[int]] = defaultdict(set)
    times: defaultdict[str, set[int]] = defaultdict(set)
    for group in groups:
        for number, count in Counter(group.numbers().tolist()).items():
            members[group.communicators[number]].update(group.ranks)
            times[group.communicators[number]].add(count)
    ignored = {name: "its ranks make different numbers of calls" for name in times if len(times[name]) > 1}
    if WORLD in members and len(members[WORLD]) != rank_count:
        ignored[WORLD] = "some replayed ranks make none of these calls"
    used = [name for name in members if name not in ignored]
    while stuck := _find_deadlock(groups, set(used)):
        ignored |= dict.fromkeys(stuck, "the ranks would deadlock")
        used = [name for name in used if name not in stuck]
    return Order(
        {name: len(members[name]) for name in used},
        {name: min(members[name]) for name in used},
        ignored,
        {name: frozenset(members[name]) for name in used},
    )


def _find_deadlock(groups: list[Visits], used: set[str]) -> set[str]:
    """Simulate the barriers, one rank per group of equal sequences; return the communicators that wait in a circle.

    A communicator that waits for a rank in the circle, but is not part of it, does not cause the deadlock.
    """
    paths = [
        [group.communicators[number] for number in group.numbers().tolist() if group.communicators[number] in used]
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
            for index in released:
                at[index] += 1
            ready += released
    stopped_at = {group: name for name, stopped in waiting.items() for group in stopped}
    return _find_circles(
        {(other, name) for group, name in stopped_at.items() for other in set(paths[group]) & waiting.keys() - {name}}
    )


def _find_circles(edges: set[tuple[str, str]]) -> set[str]:
    """Return the nodes of a directed graph that are on a circle."""
    names = sorted({name for edge in edges for name in edge})
    if not names:
        return set()
    places = {name: place for place, name in enumerate(names)}
    sources, targets = np.array([[places[name] for name in edge] for edge in sorted(edges)]).T
    graph = coo_array((np.ones(len(sources)), (sources, targets)), shape=(len(names), len(names)))
    _, parts = connected_components(graph, connection="strong")
    is_circle = np.bincount(parts)[parts] > 1
    return {name for name, is_on_circle in zip(names, is_circle.tolist(), strict=True) if is_on_circle}
