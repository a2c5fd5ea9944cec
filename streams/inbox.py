"""Watch folders: land complete inputs, and ignore files that are still being written.

No file system reports reliably whether a writer on another host has finished. So an input counts as complete if a
marker file `NAME.done` exists, or if it has been unchanged for `settle_s` and since the previous check. The larger of
two ages counts, by the file's own time stamps and by the local clock, since clocks of hosts differ. A file that is
renamed into the folder after writing already has old time stamps, so it only waits for one more check.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from iosig.settings.model import Settings
from iosig.streams.landing import DONE, Arrival, ReadOptions, land_paths, within
from iosig.warehouse.interrupts import Stop
from iosig.warehouse.sources.files.opening import unreadable
from iosig.warehouse.store.store import Store

#: suffixes of incomplete files that tools rename on completion
UNFINISHED = (".tmp", ".part", ".partial", ".filepart", ".crdownload", ".swp", "~")
#: number of inputs that land together; small enough to handle signals soon
_BATCH_FILES = 100

#: per file: name, device, inode, size, change time and modification time
_Look = tuple[tuple[str, int, int, int, int, int], ...]


@dataclass(slots=True)
class _InputState:
    """Last observed state of an input, its time, and whether it has been processed."""

    look: _Look
    since_s: float
    is_over: bool = False


@dataclass(slots=True)
class Inbox:
    """State of the inputs in a watched folder.

    settle_s: time for which an input without a marker must stay unchanged. requires_marker: land only inputs with a
    marker.
    now: returns the time by the file system's clock, and by a monotonic clock [s].
    """

    folder: Path
    settle_s: float = 60.0
    requires_marker: bool = False
    now: Callable[[], tuple[float, float]] = lambda: (time.time(), time.monotonic())
    _seen: dict[Path, _InputState] = field(default_factory=dict)
    #: folders that could not be read at the last check
    _closed: frozenset[str] = frozenset()

    def whole(self) -> tuple[list[Path], list[OSError]]:
        """Check the folder once: return complete inputs, sorted by name, that have changed since they were processed.

        Also return the errors of unreadable folders; a lasting error is returned only once.
        """
        faults: list[OSError] = []
        looks = {path: look for path in within(self.folder, faults) if (look := _look(path))}
        new = [fault for fault in faults if fault.filename not in self._closed]
        self._closed = frozenset(fault.filename for fault in faults)
        now_s, passed_s = self.now()
        before, self._seen = self._seen, {}
        for path, look in looks.items():
            state = before.get(path)
            self._seen[path] = state if state is not None and state.look == look else _InputState(look, passed_s)
        return sorted(path for path in looks if self._is_whole(path, now_s, passed_s)), new

    def _is_whole(self, path: Path, now_s: float, passed_s: float) -> bool:
        state = self._seen[path]
        if state.is_over or path.name.endswith(UNFINISHED):
            return False
        if os.path.exists(f"{path}{DONE}"):
            return True
        if self.requires_marker or state.since_s == passed_s:
            return False
        age_s = max(now_s - max(changed_ns for *_, changed_ns in state.look) / 1e9, passed_s - state.since_s)
        return age_s >= self.settle_s

    def mark_processed(self, path: Path) -> bool:
        """Mark an input as processed; return whether it is unchanged since the check."""
        state = self._seen[path]
        state.is_over = _look(path) == state.look
        return state.is_over


def _look(path: Path) -> _Look:
    """Return a fingerprint that changes whenever an input does; an empty tuple where it no longer exists."""
    try:
        files = [path] if not path.is_dir() else sorted(file for file in path.rglob("*") if not file.is_dir())
        states = ((str(file), file.stat()) for file in files)
        return tuple(
            (name, status.st_dev, status.st_ino, status.st_size, status.st_ctime_ns, status.st_mtime_ns)
            for name, status in states
        )
    except OSError:
        return ()


def follow(
    store: Store,
    settings: Settings,
    inboxes: Sequence[Inbox],
    read_options: ReadOptions,
    stop: Stop,
    poll_servers: Callable[[], Iterable[Arrival]] = tuple,
    *,
    interval_s: float,
    format_name: str | None = None,
) -> Iterator[Arrival]:
    """Land inputs that arrive in folders until `stop` is set; inputs that disappear before landing are not reported.

    poll_servers: lands additional sources on each pass; it reports new data always and a lasting error only once.
    """
    refusal_lines: dict[str, str] = {}
    while not stop.is_set():
        for inbox in inboxes:
            yield from _land_batched(store, settings, inbox, read_options, stop, format_name)
        for arrival in poll_servers():
            refusal_line = arrival.line() if arrival.refusal else ""
            if arrival.landed or (refusal_line and refusal_lines.get(arrival.name) != refusal_line):
                yield arrival
            refusal_lines[arrival.name] = refusal_line
            if stop.is_set():
                return
        stop.wait(interval_s)


def _land_batched(
    store: Store, settings: Settings, inbox: Inbox, read_options: ReadOptions, stop: Stop, format_name: str | None
) -> Iterator[Arrival]:
    paths, unreadable_folders = inbox.whole()
    yield from (Arrival(str(fault.filename), None, unreadable(fault)) for fault in unreadable_folders)
    for start in range(0, len(paths), _BATCH_FILES):
        if stop.is_set():
            return
        batch = paths[start : start + _BATCH_FILES]
        for arrival in land_paths(store, settings, map(str, batch), read_options, format_name=format_name):
            if os.path.exists(arrival.name):
                yield arrival
        for path in batch:
            inbox.mark_processed(path)
