"""Naive implementation of `iosig.transforms.synthetic.entries`: one target, instant by instant."""

from __future__ import annotations

from collections.abc import Sequence


def read(
    changes: Sequence[tuple[int, int]],
    scraped_us: Sequence[int],
    restarted_us: Sequence[int],
    looks_us: int,
    cleanup_us: int,
) -> tuple[list[tuple[int, int, int, int]], set[int]]:
    """Return the readings as (scrape, entry, first change of its life, last change), and the unread changes.

    `changes` has (entry, time) in order of time.
    """  # fmt: skip
    until = max([0, *scraped_us, *restarted_us, *(at for _, at in changes)])
    looks = range(looks_us, until + 1, cleanup_us // 2)
    happens = sorted(
        [(at, 1, number) for number, (_, at) in enumerate(changes)]
        + [(at, 0, -1) for at in restarted_us]
        + [(at, 0, -2) for at in looks]
        + [(at, 2, -3) for at in scraped_us]
    )
    alive: dict[int, list[int]] = {}
    found: list[tuple[int, int, int, int]] = []
    unseen = set(range(len(changes)))
    for at, _, what in happens:
        if what == -1:
            alive.clear()
        elif what == -2:
            alive = {entry: own for entry, own in alive.items() if changes[own[-1]][1] + cleanup_us >= at}
        elif what == -3:
            found += [(at, entry, own[0], own[-1]) for entry, own in alive.items()]
            unseen -= {number for own in alive.values() for number in own}
        else:
            alive.setdefault(changes[what][0], []).append(what)
    return found, unseen
