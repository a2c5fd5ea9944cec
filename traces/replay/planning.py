"""Estimate the work of a replay in advance, and refuse it if disk space or file descriptors are insufficient."""

from __future__ import annotations

import os
import resource
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from iosig.traces.replay.files import Uses
from iosig.traces.replay.functions import CLOSING, OPENING, READING, WRITING
from iosig.traces.replay.libc import Place
from iosig.traces.replay.ordering import Visits
from iosig.traces.replay.sandbox import Sandbox
from iosig.traces.replay.scripts import Script
from iosig.warehouse.errors import InputRefused

#: free disk space required in addition to the replay's files: a fraction of their size, and a fixed number of bytes
_MARGIN_RATIO = 0.05
_MARGIN_BYTES = 64 << 20
#: descriptors of a process in addition to its ranks' files
_OTHER_DESCRIPTORS = 64
_PIECE_BYTES = 16 << 20


@dataclass(slots=True)
class Survey:
    """Estimated work of a set of ranks.

    counts: calls that are replayed, by function; not_replayed: other calls, by function and reason. open_count: maximum
    number of files open at the same time. request_bytes: the largest request. end_s: the latest end of any rank's
    calls.
    """

    ranks: tuple[int, ...] = ()
    uses: Uses = field(default_factory=Uses)
    visits: list[Visits] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    not_replayed: Counter[tuple[str, str]] = field(default_factory=Counter)
    read_bytes: int = 0
    written_bytes: int = 0
    step_count: int = 0
    open_count: int = 0
    max_open_count: int = 0
    request_bytes: int = 0
    end_s: float = 0.0

    @classmethod
    def from_script(cls, script: Script, uses: Uses) -> Survey:
        """Compute the estimates for one rank from its script and its file accesses."""
        verbs, sizes = script.steps["verb"], script.steps["size"]
        reads, writes, opens, closes = (
            np.isin(verbs, [*map(int, kind)]) for kind in (READING, WRITING, OPENING, CLOSING)
        )
        return cls(
            ranks=(script.rank,),
            uses=uses,
            counts=script.counts,
            not_replayed=script.not_replayed,
            # Python integers, since sizes in a damaged trace may exceed 64 bits
            read_bytes=sum(sizes[reads].tolist()),
            written_bytes=sum(sizes[writes].tolist()),
            step_count=len(script.steps),
            open_count=int(np.cumsum(opens.astype(np.int64) - closes).max(initial=0)),
            request_bytes=int(sizes[reads | writes].max(initial=0)),
            end_s=script.end_s,
        )

    def add(self, part: Survey) -> None:
        """Add the survey of other ranks, of this process or of another."""
        self.uses.add(part.uses)
        for name in ("ranks", "visits", "read_bytes", "written_bytes", "step_count", "open_count"):
            setattr(self, name, getattr(self, name) + getattr(part, name))
        self.counts.update(part.counts)
        self.not_replayed.update(part.not_replayed)
        self.max_open_count = max(self.max_open_count, part.open_count)
        self.request_bytes = max(self.request_bytes, part.request_bytes)
        self.end_s = max(self.end_s, part.end_s)


def merge_surveys(parts: Iterable[Survey]) -> Survey:
    """Merge the surveys of several processes; `max_open_count` is the maximum of a single process."""
    total = Survey()
    for part in parts:
        total.add(part)
    return total


def disk_bytes(uses: Uses) -> int:
    """Return the maximum disk space of all files."""
    return sum(use.disk_bytes() for use in uses.files.values())


def list_prepared_files(uses: Uses) -> dict[Place, int]:
    """Return the files that must exist before the start, and their sizes."""
    sizes = {place: use.prepared_bytes() for place, use in uses.files.items()}
    return {place: size for place, size in sizes.items() if size is not None}


def check(survey: Survey, folder: Path) -> None:
    """Raise InputRefused if the disk has too little space, or a process too few file descriptors."""
    needed = disk_bytes(survey.uses)
    stats = os.statvfs(folder)
    free = stats.f_bavail * stats.f_frsize
    if needed * (1 + _MARGIN_RATIO) + _MARGIN_BYTES > free:
        raise InputRefused(
            f"The replay needs up to {needed:,} bytes, and {free:,} are free under {folder}.",
            "Replay fewer ranks (--ranks), or choose a folder on a larger disk (--output).",
        )
    if stats.f_files and len(survey.uses.files) + _OTHER_DESCRIPTORS > stats.f_favail:
        raise InputRefused(
            f"The replay creates up to {len(survey.uses.files):,} files; {folder} has room for "
            f"{stats.f_favail:,} more.",
            "Replay fewer ranks (--ranks), or choose a folder on another disk (--output).",
        )
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if limit != resource.RLIM_INFINITY and survey.max_open_count + _OTHER_DESCRIPTORS > limit:
        raise InputRefused(
            f"A process would have {survey.max_open_count:,} files open at once; this machine allows {limit:,}.",
            "Use more processes (--processes), replay fewer (--ranks), or raise the limit (ulimit -n).",
        )


def raise_limit() -> None:
    """Raise this process's limit of open files to the hard limit."""
    _, hard_limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard_limit, hard_limit))


def prepare(uses: Uses, folder: Path, tell: Callable[[str], None]) -> Counter[str]:
    """Create the folders and files that the traced run found; return failures, counted."""
    faults: Counter[str] = Counter()
    sandbox = Sandbox(folder)
    try:
        for place in uses.list_needed_folders():
            try:
                sandbox.make_folders(place)
            except OSError as error:
                faults[f"folder could not be created in advance: {error.strerror}"] += 1
        sizes = list_prepared_files(uses)
        if total := sum(sizes.values()):
            tell(f"preparing {len(sizes):,} files of {total:,} bytes")
        piece = os.urandom(min(_PIECE_BYTES, max([1, *sizes.values()])))
        for place, size in sizes.items():
            try:
                _fill(sandbox, place, size, piece)
            except OSError as error:
                faults[f"file could not be created in advance: {error.strerror}"] += 1
    finally:
        sandbox.close()
    return faults


def _fill(sandbox: Sandbox, place: Place, size: int, piece: bytes) -> None:
    descriptor = sandbox.open(place, os.O_WRONLY | os.O_CREAT, 0o644)
    try:
        remaining = size
        while remaining > 0:
            remaining -= os.write(descriptor, piece[:remaining])
    finally:
        os.close(descriptor)


def sizes_under(folder: Path, places: Iterable[Place]) -> dict[Place, int | None]:
    """Return the sizes of files under a folder; None for a missing file."""
    sandbox = Sandbox(folder)
    try:
        return {place: _size(sandbox, place) for place in places}
    finally:
        sandbox.close()


def _size(sandbox: Sandbox, place: Place) -> int | None:
    try:
        return sandbox.stat(place).st_size
    except OSError:
        return None
