"""Open inputs to follow: traces, folders of traces, landed polls of a job, and LMT databases."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from iosig.settings.model import Settings
from iosig.streams.following.followed import FollowedInput
from iosig.streams.following.rows import Identity
from iosig.transforms.predictions.predictor import OnlineParams
from iosig.warehouse.errors import InputRefused, IosigError, UsageError
from iosig.warehouse.sources.files.opening import read_head
from iosig.warehouse.sources.tmio import source
from iosig.warehouse.sources.tmio.following import TmioFeed
from iosig.warehouse.store.journal import Journal, State
from iosig.warehouse.store.store import Store

if TYPE_CHECKING:
    from iosig.streams.following.jobs import FollowedJob
    from iosig.streams.following.polls import PollFeed

Position = Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class AskedPolls:
    """Selection of polls to follow: a job's, from the warehouse or an LMT database (url), or all since an instant."""

    job_id: str | None = None
    cluster: str | None = None
    filesystem: str | None = None
    url: str | None = None
    since: datetime | None = None
    time_zone: str | None = None


@dataclass(frozen=True, slots=True)
class Opener:
    """Opens inputs to follow and restores their state from the journal.

    journal: None: nothing is stored. spacing_s, direction: see `Followed`. is_anew: discard the saved state of an
    input, except for the numbering of runs and evaluations.
    """

    params: OnlineParams = field(default_factory=OnlineParams)
    spacing_s: float = 0.0
    direction: str | None = None
    is_anew: bool = False
    journal: Journal | None = None

    def trace(self, path: Path) -> FollowedInput:
        """Open a TMIO trace, which need not exist yet."""
        followed_id = trace_id(path)
        state = self._claim_state(followed_id)
        feed = TmioFeed(path, self._position(state))
        identity = Identity(followed_id, "trace", None, _as_text(feed.name), None, "client", is_shared_traffic=False)
        return self._ready(FollowedInput(identity, feed, self.params, self.spacing_s, self.direction), state)

    def job(self, store: Store, settings: Settings, job: FollowedJob) -> FollowedInput:
        """Open the landed polls of a job."""
        from iosig.streams.following.merged_polls import FeedParams
        from iosig.streams.following.polls import LandedPollFeed

        params = FeedParams(flush_s=self.spacing_s)
        return self.polls(
            job.followed_id, lambda position: LandedPollFeed(store, settings, job, position, params=params)
        )

    def database(self, store: Store, settings: Settings, request: AskedPolls, job: FollowedJob | None) -> FollowedInput:
        """Open the polls of a live LMT database: of a job's run, or since an instant."""
        from iosig.streams.following.jobs import WatchedJob
        from iosig.streams.following.lmt import LmtFeed, make_followed_id
        from iosig.streams.following.merged_polls import FeedParams
        from iosig.streams.landing import ReadOptions, make_reading
        from iosig.warehouse.sources.polls.lmt_database import SOURCE

        url, filesystem = request.url or "", request.filesystem or ""
        since = request.since or (job.started_at if job else None)
        if since is None:
            raise UsageError("Pass a start time or a job.")
        reading = make_reading(SOURCE, settings, ReadOptions(time_zone=request.time_zone))
        watched = None if job is None else WatchedJob(store, settings, job)
        params = FeedParams(flush_s=self.spacing_s)
        return self.polls(
            make_followed_id(filesystem, since, watched),
            lambda position: LmtFeed(
                url, filesystem, since, reading, watched, position, settings=settings, params=params
            ),
        )

    def open_polls(self, store: Store, settings: Settings, query: AskedPolls) -> list[FollowedInput]:
        """Open the selected polls, as one input per file system that the job may use."""
        from iosig.streams.following.jobs import find_jobs

        jobs: tuple[FollowedJob, ...] = ()
        if query.job_id is not None:
            jobs = find_jobs(store, settings, query.job_id, query.cluster, query.filesystem)
        if query.url is None:
            return [self.job(store, settings, job) for job in jobs]
        return [self.database(store, settings, query, jobs[0] if jobs else None)]

    def polls(self, followed_id: str, opened: Callable[[Position], PollFeed]) -> FollowedInput:
        """Open a feed of polls; `opened` creates it from a position."""
        state = self._claim_state(followed_id)
        feed = opened(self._position(state))
        # server polls mix the phases of several jobs, so changes are detected in the predicted periods
        params = replace(self.params, observed="predictions")
        return self._ready(FollowedInput(feed.identity, feed, params, self.spacing_s, self.direction), state)

    def _claim_state(self, followed_id: str) -> State | None:
        if self.journal is None:
            return None
        self.journal.follow(followed_id)
        state = self.journal.state(followed_id)
        if state is not None and state.fault is not None and not self.is_anew:
            raise UsageError(f"The saved state of {followed_id} is unusable: {state.fault}. Start over with --reset.")
        return state

    def _position(self, state: State | None) -> Position:
        if state is None or self.is_anew:
            return None
        feed_position: Mapping[str, Any] | None = state.position.get("feed") or None
        return feed_position

    def _ready(self, followed: FollowedInput, state: State | None) -> FollowedInput:
        if state is not None:
            (followed.count_on if self.is_anew else followed.restore)(state)
        return followed


def trace_id(path: Path) -> str:
    """Return the unique id of a trace: its absolute path, or a URL where the path is not valid text."""
    absolute = path.absolute()
    return str(absolute) if _as_text(str(absolute)) == str(absolute) else absolute.as_uri()


def _as_text(name: str) -> str:
    """Decode a file name, with invalid bytes as escapes."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


@dataclass(slots=True)
class Folder:
    """A folder with TMIO traces to follow, including future ones; other files are ignored.

    A file is checked once, and again whenever it changes, since it may then have become a trace or a resumed run. If a
    followed file reappears under another name, it was rotated, and the existing feed reads it to its end.
    """

    path: Path
    opener: Opener
    _followed: dict[str, FollowedInput] = field(default_factory=dict)
    _looked_at: dict[str, tuple[int, ...]] = field(default_factory=dict)
    #: device and inode of each followed file name, and of each rotated file
    _inodes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    _rotated: dict[str, tuple[int, ...]] = field(default_factory=dict)

    def look(self, refuse: Callable[[str, IosigError], None] | None = None) -> list[FollowedInput]:
        """Return new traces, sorted by name, and ended ones that have changed.

        refuse: receives the id of a trace that cannot be followed, and the reason; without it, the error is raised.
        """
        opened = []
        files = dict(self._files())
        self._looked_at = {name: fingerprint for name, fingerprint in self._looked_at.items() if name in files}
        for name, signature in sorted(files.items()):
            followed = self._followed.get(name)
            if (followed is not None and not followed.is_over) or self._looked_at.get(name) == signature:
                continue
            self._followed.pop(name, None)
            self._looked_at[name] = signature
            path = self.path / name
            if self._is_rotated(name, signature[:2]) or not _is_trace(path):
                continue
            try:
                self._followed[name] = self.opener.trace(path)
                opened.append(self._followed[name])
            except IosigError as fault:
                if refuse is None:
                    raise
                refuse(trace_id(path), fault)
        self._inodes = {name: files[name][:2] for name in self._followed if name in files}
        return opened

    def _is_rotated(self, name: str, inode: tuple[int, ...]) -> bool:
        other_inodes = {followed: other_inode for followed, other_inode in self._inodes.items() if followed != name}
        if inode in other_inodes.values() or self._rotated.get(name) == inode:
            self._rotated[name] = inode
            return True
        self._rotated.pop(name, None)
        return False

    def _files(self) -> Iterator[tuple[str, tuple[int, ...]]]:
        """Yield the names of visible files, each with a fingerprint that changes when the file does."""
        try:
            with os.scandir(self.path) as entries:
                for entry in entries:
                    with suppress(OSError):
                        status = entry.stat()
                        if not entry.name.startswith(".") and stat.S_ISREG(status.st_mode):
                            yield (
                                entry.name,
                                (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns),
                            )
        except OSError as error:
            raise InputRefused(f"The folder {self.path} cannot be read: {error.strerror}.", "Check it.") from error


def _is_trace(path: Path) -> bool:
    try:
        return source.sniff(read_head(path))
    except (InputRefused, OSError):
        return False
