"""What is to be followed: traces, folders of traces, landed polls of a job, an LMT database; each ready to go on."""

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
from iosig.streams.following.followed import Followed
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
    """Whose polls are meant: a job's, from the warehouse or from an LMT database (url), or simply since an instant."""

    job_id: str | None = None
    cluster: str | None = None
    filesystem: str | None = None
    url: str | None = None
    since: datetime | None = None
    time_zone: str | None = None


@dataclass(frozen=True, slots=True)
class Opener:
    """Makes inputs ready to be followed, from where the journal says that they were left.

    journal: None: nothing is kept. spacing_s, direction: see `Followed`. is_anew: what is known of an input from before
    is forgotten, but for how many runs and evaluations there were.
    """

    params: OnlineParams = field(default_factory=OnlineParams)
    spacing_s: float = 0.0
    direction: str | None = None
    is_anew: bool = False
    journal: Journal | None = None

    def trace(self, path: Path) -> Followed:
        """Return a TMIO trace, be it there yet or not."""
        followed_id = trace_id(path)
        state = self._claimed(followed_id)
        feed = TmioFeed(path, self._position(state))
        identity = Identity(followed_id, "trace", None, _as_text(feed.name), None, "client", is_shared_traffic=False)
        return self._ready(Followed(identity, feed, self.params, self.spacing_s, self.direction), state)

    def job(self, store: Store, settings: Settings, job: FollowedJob) -> Followed:
        """Return the landed polls of a job."""
        from iosig.streams.following.merged_polls import FeedParams
        from iosig.streams.following.polls import LandedPollFeed

        params = FeedParams(flush_s=self.spacing_s)
        return self.polls(
            job.followed_id, lambda position: LandedPollFeed(store, settings, job, position, params=params)
        )

    def database(self, store: Store, settings: Settings, asked: AskedPolls, job: FollowedJob | None) -> Followed:
        """Return the polls of an LMT database that is being written: of a job's run, or since an instant."""
        from iosig.streams.following.jobs import WatchedJob
        from iosig.streams.following.lmt import LmtFeed, followed_id_of
        from iosig.streams.following.merged_polls import FeedParams
        from iosig.streams.landing import Told, reading_of
        from iosig.warehouse.sources.polls.lmt_database import SOURCE

        url, filesystem = asked.url or "", asked.filesystem or ""
        since = asked.since or (job.started_at if job else None)
        if since is None:
            raise UsageError("Say since when, or which job is meant.")
        reading = reading_of(SOURCE, settings, Told(time_zone=asked.time_zone))
        watched = None if job is None else WatchedJob(store, settings, job)
        params = FeedParams(flush_s=self.spacing_s)
        return self.polls(
            followed_id_of(filesystem, since, watched),
            lambda position: LmtFeed(
                url, filesystem, since, reading, watched, position, settings=settings, params=params
            ),
        )

    def asked(self, store: Store, settings: Settings, asked: AskedPolls) -> list[Followed]:
        """Return the polls that are meant: one input for each file system that a job may use."""
        from iosig.streams.following.jobs import find_jobs

        jobs: tuple[FollowedJob, ...] = ()
        if asked.job_id is not None:
            jobs = find_jobs(store, settings, asked.job_id, asked.cluster, asked.filesystem)
        if asked.url is None:
            return [self.job(store, settings, job) for job in jobs]
        return [self.database(store, settings, asked, jobs[0] if jobs else None)]

    def polls(self, followed_id: str, opened: Callable[[Position], PollFeed]) -> Followed:
        """Return a feed of polls, which `opened` makes from a position."""
        state = self._claimed(followed_id)
        feed = opened(self._position(state))
        # Phases of several jobs cannot be told apart in what servers saw: the predicted periods tell of changes.
        params = replace(self.params, observed="predictions")
        return self._ready(Followed(feed.identity, feed, params, self.spacing_s, self.direction), state)

    def _claimed(self, followed_id: str) -> State | None:
        if self.journal is None:
            return None
        self.journal.follow(followed_id)
        state = self.journal.state(followed_id)
        if state is not None and state.fault is not None and not self.is_anew:
            raise UsageError(f"What is kept of {followed_id} cannot be used: {state.fault}. Follow it with --reset.")
        return state

    def _position(self, state: State | None) -> Position:
        if state is None or self.is_anew:
            return None
        found: Mapping[str, Any] | None = state.position.get("feed") or None
        return found

    def _ready(self, followed: Followed, state: State | None) -> Followed:
        if state is not None:
            (followed.count_on if self.is_anew else followed.restore)(state)
        return followed


def trace_id(path: Path) -> str:
    """Return what tells a trace from others: its absolute path; as a URL where its bytes are no text."""
    absolute = path.absolute()
    return str(absolute) if _as_text(str(absolute)) == str(absolute) else absolute.as_uri()


def _as_text(name: str) -> str:
    """Return a file's name as text: bytes that are none are spelled out."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


@dataclass(slots=True)
class Folder:
    """A folder whose TMIO traces are followed, those to come included; what is no trace is left alone.

    A file is looked at once, and again when it has changed: only then may it have become a trace, or a run that was
    over have gone on. A file that was followed under another name was rotated: that one's feed reads it to its end.
    """

    path: Path
    opener: Opener
    _followed: dict[str, Followed] = field(default_factory=dict)
    _looked_at: dict[str, tuple[int, ...]] = field(default_factory=dict)
    #: device and inode of the file that each followed name had, and that each rotated one has
    _inodes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    _rotated: dict[str, tuple[int, ...]] = field(default_factory=dict)

    def look(self, refuse: Callable[[str, IosigError], None] | None = None) -> list[Followed]:
        """Return the traces that are new, by name, and those that were over and have changed.

        refuse: gets the id of one that cannot be followed, and why; without it that is raised.
        """
        found = []
        files = dict(self._files())
        self._looked_at = {name: known for name, known in self._looked_at.items() if name in files}
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
                found.append(self._followed[name])
            except IosigError as fault:
                if refuse is None:
                    raise
                refuse(trace_id(path), fault)
        self._inodes = {name: files[name][:2] for name in self._followed if name in files}
        return found

    def _is_rotated(self, name: str, inode: tuple[int, ...]) -> bool:
        others = {followed: each for followed, each in self._inodes.items() if followed != name}
        if inode in others.values() or self._rotated.get(name) == inode:
            self._rotated[name] = inode
            return True
        self._rotated.pop(name, None)
        return False

    def _files(self) -> Iterator[tuple[str, tuple[int, ...]]]:
        """Yield the names of files that are no hidden ones, and what changes whenever they do."""
        try:
            with os.scandir(self.path) as entries:
                for entry in entries:
                    with suppress(OSError):
                        found = entry.stat()
                        if not entry.name.startswith(".") and stat.S_ISREG(found.st_mode):
                            yield (
                                entry.name,
                                (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns),
                            )
        except OSError as error:
            raise InputRefused(f"The folder {self.path} cannot be read: {error.strerror}.", "Check it.") from error


def _is_trace(path: Path) -> bool:
    try:
        return source.sniff(read_head(path))
    except (InputRefused, OSError):
        return False
