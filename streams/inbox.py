"""A folder that is watched: what arrives in it is landed once it is whole, and what is being written is left alone.

Nobody can ask a file system whether a writer has ended, least of all another host's. So an input counts as whole when
whoever wrote it says so (`NAME.done` beside it), or when it has not changed for a while: not since the look before, and
not for `settle_s` by its own time stamps or by the time that passed here, for clocks of hosts differ. What is renamed
into the folder when it is whole has the time stamps of its writing, and waits for one more look only.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from iosig.settings.model import Settings
from iosig.streams.landing import DONE, Arrival, Told, land_paths, within
from iosig.warehouse.interrupts import Stop
from iosig.warehouse.sources.files.opening import unreadable
from iosig.warehouse.store.store import Store

#: names under which tools write what they rename when it is whole
UNFINISHED = (".tmp", ".part", ".partial", ".filepart", ".crdownload", ".swp", "~")
#: what is landed together, so that a signal does not wait for long
_AT_ONCE = 100

#: of each of its files: the name, device, inode, size, when its rights or name were changed, and when its content was
_Look = tuple[tuple[str, int, int, int, int, int], ...]


@dataclass(slots=True)
class _Seen:
    """How an input was last seen: what it looked like, since when, and whether that was landed or refused."""

    look: _Look
    since_s: float
    is_over: bool = False


@dataclass(slots=True)
class Inbox:
    """What is known of a folder's inputs.

    settle_s: how long an input without a marker has to stay unchanged. requires_marker: land nothing without a marker.
    now: the time as files have it, and a clock that never goes back [s].
    """

    folder: Path
    settle_s: float = 60.0
    requires_marker: bool = False
    now: Callable[[], tuple[float, float]] = lambda: (time.time(), time.monotonic())
    _seen: dict[Path, _Seen] = field(default_factory=dict)
    #: folders that could not be looked into the last time
    _closed: frozenset[str] = frozenset()

    def whole(self) -> tuple[list[Path], list[OSError]]:
        """Look once: return the inputs that are whole and were not given back since they changed, by name.

        Beside them the faults of folders that cannot be looked into, each once as long as that lasts.
        """
        faults: list[OSError] = []
        found = {path: look for path in within(self.folder, faults) if (look := _look(path))}
        new = [fault for fault in faults if fault.filename not in self._closed]
        self._closed = frozenset(fault.filename for fault in faults)
        now_s, passed_s = self.now()
        before, self._seen = self._seen, {}
        for path, look in found.items():
            known = before.get(path)
            self._seen[path] = known if known is not None and known.look == look else _Seen(look, passed_s)
        return sorted(path for path in found if self._is_whole(path, now_s, passed_s)), new

    def _is_whole(self, path: Path, now_s: float, passed_s: float) -> bool:
        seen = self._seen[path]
        if seen.is_over or path.name.endswith(UNFINISHED):
            return False
        if os.path.exists(f"{path}{DONE}"):
            return True
        if self.requires_marker or seen.since_s == passed_s:
            return False
        age_s = max(now_s - max(changed_ns for *_, changed_ns in seen.look) / 1e9, passed_s - seen.since_s)
        return age_s >= self.settle_s

    def given_back(self, path: Path) -> bool:
        """Note that an input was landed or refused as it was seen; return whether it has not changed meanwhile."""
        seen = self._seen[path]
        seen.is_over = _look(path) == seen.look
        return seen.is_over


def _look(path: Path) -> _Look:
    """Return what changes whenever an input does; nothing where it is gone."""
    try:
        files = [path] if not path.is_dir() else sorted(file for file in path.rglob("*") if not file.is_dir())
        states = ((str(file), file.stat()) for file in files)
        return tuple(
            (name, one.st_dev, one.st_ino, one.st_size, one.st_ctime_ns, one.st_mtime_ns) for name, one in states
        )
    except OSError:
        return ()


def follow(
    store: Store,
    settings: Settings,
    inboxes: Sequence[Inbox],
    told: Told,
    stop: Stop,
    also: Callable[[], Iterable[Arrival]] = tuple,
    *,
    interval_s: float,
    format_name: str | None = None,
) -> Iterator[Arrival]:
    """Land what arrives in folders until it is to stop; what vanishes before it is landed is not told.

    also: lands what is asked for besides, each time; nothing new is not told, and what is wrong is told once.
    """
    wrong: dict[str, str] = {}
    while not stop.is_set():
        for inbox in inboxes:
            yield from _landed(store, settings, inbox, told, stop, format_name)
        for arrival in also():
            said = arrival.line() if arrival.refusal else ""
            if arrival.landed or (said and wrong.get(arrival.name) != said):
                yield arrival
            wrong[arrival.name] = said
            if stop.is_set():
                return
        stop.wait(interval_s)


def _landed(
    store: Store, settings: Settings, inbox: Inbox, told: Told, stop: Stop, format_name: str | None
) -> Iterator[Arrival]:
    paths, closed = inbox.whole()
    yield from (Arrival(str(fault.filename), None, unreadable(fault)) for fault in closed)
    for start in range(0, len(paths), _AT_ONCE):
        if stop.is_set():
            return
        some = paths[start : start + _AT_ONCE]
        for arrival in land_paths(store, settings, map(str, some), told, format_name=format_name):
            if os.path.exists(arrival.name):
                yield arrival
        for path in some:
            inbox.given_back(path)
