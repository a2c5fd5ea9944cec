"""Infer the files that a replay needs and leaves: their sizes before the traced run, and their final sizes.

Return values are not traced, so the initial state is inferred: bytes that ranks read before any rank wrote them, and
files that ranks used without creating them. "Before" follows a rank's own order; among ranks, it follows the number of
collective calls before each access.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl

from iosig.traces.replay.functions import EFFECTS, Verb, among
from iosig.traces.replay.libc import O_APPEND, O_CREAT, O_EXCL, O_TRUNC, STREAM_FLAGS, Place
from iosig.traces.replay.scripts import ABSENT, Written
from iosig.warehouse.contracts.traces import TRACE_FILES, TRACE_REQUESTS
from iosig.warehouse.sources.recorder.requests import Requests

#: later than every phase
NEVER = 1 << 60
#: MPI's access modes (MPI 4.1, section 14.2.1, as Open MPI and MPICH number them)
_MPI_CREATE, _MPI_EXCL = 1, 64


@dataclass(frozen=True, slots=True)
class FileUse:
    """Accesses of ranks to one file, with the phases in which they happen.

    needed_bytes: read without a prior write by the same rank, first in phase `needed_phase`. used_phase: first use
    without creation by the same rank. made_phase, written_phase: first creation and first write. end_bytes: end of the
    furthest write or resize. is_sized: whether writes and resizes alone determine its size. is_taken: whether it is
    unlinked or renamed in the end. is_exclusive: whether it must not exist before. is_emptied: whether an open
    truncates it.
    """

    read_bytes: int = 0
    written_bytes: int = 0
    needed_bytes: int = 0
    needed_phase: int = NEVER
    used_phase: int = NEVER
    made_phase: int = NEVER
    written_phase: int = NEVER
    end_bytes: int = 0
    reserved_bytes: int = 0
    is_sized: bool = True
    is_taken: bool = False
    is_exclusive: bool = False
    is_emptied: bool = False

    def merge(self, other: FileUse) -> FileUse:
        """Merge the accesses of two sets of ranks."""
        return FileUse(
            self.read_bytes + other.read_bytes,
            self.written_bytes + other.written_bytes,
            max(self.needed_bytes, other.needed_bytes),
            min(self.needed_phase, other.needed_phase),
            min(self.used_phase, other.used_phase),
            min(self.made_phase, other.made_phase),
            min(self.written_phase, other.written_phase),
            max(self.end_bytes, other.end_bytes),
            max(self.reserved_bytes, other.reserved_bytes),
            self.is_sized and other.is_sized,
            self.is_taken or other.is_taken,
            self.is_exclusive or other.is_exclusive,
            self.is_emptied or other.is_emptied,
        )

    def prepared_bytes(self) -> int | None:
        """Return the file's required size before the start; None if it need not exist."""
        is_written_before = self.written_phase < self.needed_phase and self.end_bytes >= self.needed_bytes
        if self.needed_bytes and not is_written_before:
            return self.needed_bytes
        is_made_before = self.made_phase < self.used_phase
        if self.used_phase < NEVER and not is_made_before and not self.is_exclusive:
            return 0
        return None

    def final_bytes(self) -> int | None:
        """Return the file's final size; None if the trace does not determine it."""
        if not self.is_sized or self.is_taken:
            return None
        return self.end_bytes if self.is_emptied else max(self.end_bytes, self.prepared_bytes() or 0)

    def disk_bytes(self) -> int:
        """Return the maximum disk space of the file."""
        written = min(self.written_bytes, self.end_bytes) if self.is_sized else self.written_bytes
        return max(written + (self.prepared_bytes() or 0), self.reserved_bytes)


@dataclass(slots=True)
class Uses:
    """Accesses of ranks to all files, with the folders that they create and require."""

    files: dict[Place, FileUse] = field(default_factory=dict)
    made_folders: set[Place] = field(default_factory=set)
    named: set[Place] = field(default_factory=set)

    def join(self, place: Place, use: FileUse) -> None:
        """Merge accesses to one file into these."""
        self.files[place] = self.files[place].merge(use) if place in self.files else use

    def add(self, other: Uses) -> None:
        """Merge the accesses of other ranks."""
        for place, use in other.files.items():
            self.join(place, use)
        self.made_folders |= other.made_folders
        self.named |= other.named

    def drop_order(self) -> None:
        """Drop the order among ranks, if no barriers define it."""
        phases = ("needed_phase", "used_phase", "made_phase", "written_phase")
        for place, use in self.files.items():
            reset: dict[str, Any] = {name: 0 for name in phases if getattr(use, name) < NEVER}
            self.files[place] = replace(use, **reset)

    def list_needed_folders(self) -> Iterator[Place]:
        """Yield folders that must exist before the replay starts, because no rank creates them."""
        for place in sorted(self.named):
            above = [place[:end] for end in range(1, len(place))]
            level = next((at for at, folder in enumerate(above) if folder in self.made_folders), len(above))
            yield place[: level + 1]


def uses(written: Written) -> Uses:
    """Collect the file accesses of one rank."""
    script, replayed = written.script, written.done
    collected = Uses()
    phases = np.searchsorted(written.sync_places, replayed["place"].to_numpy().astype(np.int64), side="right")
    calls = _with_paths(replayed).with_columns(phase=pl.Series(phases, dtype=pl.Int64))
    _add_events(collected, calls, script.places)
    for place, use in _compute_uses(written):
        collected.join(place, use)
    return collected


def _with_paths(replayed: pl.DataFrame) -> pl.DataFrame:
    """Add the number of a call's path as `path_id`; for MPI-IO calls, the path with which the handle was opened."""
    verb = pl.col("verb")
    opened = pl.when(verb == int(Verb.MPI_OPEN)).then("other_id").forward_fill().over("file_id")
    return replayed.with_columns(path_id=pl.when(verb >= int(Verb.MPI_OPEN)).then(opened).otherwise("file_id"))


def _add_events(collected: Uses, calls: pl.DataFrame, places: dict[int, Place]) -> None:
    for row in _effects(calls).to_dicts():
        place = places[row.pop("path_id")]
        collected.named.add(place)
        is_folder, is_made = row.pop("is_folder"), row.pop("is_made")
        if is_made:
            collected.made_folders.add(place)
        if not is_folder:
            collected.files[place] = FileUse(**row)
    renamed = calls.filter(pl.col("verb") == int(Verb.RENAME))["other_id"].drop_nulls().unique().to_list()
    for number in renamed:
        collected.named.add(places[number])
        old = collected.files.get(places[number], FileUse())
        collected.files[places[number]] = replace(old, is_sized=False, made_phase=min(old.made_phase, 0))


def _effects(calls: pl.DataFrame) -> pl.DataFrame:
    """Return the effects of calls on each path other than transfers: fields of `FileUse`, `is_folder` and `is_made`."""
    events = calls.filter(pl.col("path_id").is_not_null()).with_columns(
        makes=_opens_with(O_CREAT), **{effect: among(verbs) for effect, verbs in EFFECTS.items()}
    )
    phase, bytes_ = pl.col("phase"), pl.col("bytes")
    # an access to a file implies that it existed when it was opened
    opened_phase = pl.when("opens").then("phase").forward_fill().over("path_id")
    made_before = pl.col("makes").cast(pl.Int64).cum_max().over("path_id") > 0
    marked = events.with_columns(since=pl.coalesce(opened_phase, phase), needs=pl.col("uses") & ~made_before)
    return marked.group_by("path_id", maintain_order=True).agg(
        used_phase=pl.col("since").filter("needs").min().fill_null(NEVER),
        made_phase=phase.filter("makes").min().fill_null(NEVER),
        end_bytes=bytes_.filter("sizes").max().fill_null(0),
        reserved_bytes=bytes_.filter("reserves").max().fill_null(0),
        is_sized=~(pl.col("cuts") | _opens_with(O_APPEND)).any(),
        is_taken=pl.col("takes").last(),
        is_exclusive=_opens_with(O_CREAT | O_EXCL).any(),
        is_emptied=_opens_with(O_TRUNC).any(),
        is_folder=pl.col("is_of_folder").all(),
        is_made=pl.col("makes_folder").any(),
    )


def _opens_with(flags: int) -> pl.Expr:
    """Return whether a call opens a file with all of these `open` flags, in its own notation."""
    verb, flag = pl.col("verb"), pl.col("flag")
    by_letter = pl.col("flags").str.slice(0, 1).replace_strict(STREAM_FLAGS, default=0, return_dtype=pl.Int64)
    open_flags = (
        pl.when(verb == int(Verb.OPEN))
        .then(flag)
        .when(verb == int(Verb.CREAT))
        .then(O_CREAT | O_TRUNC)
        .when(verb == int(Verb.FOPEN))
        .then(by_letter)
        .when(verb == int(Verb.MPI_OPEN))
        .then(flag.and_(_MPI_CREATE) * O_CREAT + flag.and_(_MPI_EXCL) // _MPI_EXCL * O_EXCL)
        .otherwise(0)
    )
    return open_flags.fill_null(0) & flags == flags


def _compute_uses(written: Written) -> list[tuple[Place, FileUse]]:
    """Return the bytes that a rank reads and writes per file, and the bytes that it read without a prior write."""
    replayed = written.done
    # requests need times, so the place of the call stands for its time
    calls = replayed.select(
        "module",
        "function",
        "arguments",
        rank=pl.lit(written.script.rank).cast(pl.Int64),
        call=pl.col("place").cast(pl.Int64),
        level=pl.lit(0).cast(pl.Int64),
        start_s=pl.col("place").cast(pl.Float64),
        end_s=pl.col("place").cast(pl.Float64),
    )
    requests = Requests()
    batches = [*requests.add(calls), *requests.finish()]
    rows = [batch.rows for batch in batches if batch.table == TRACE_REQUESTS]
    paths = {
        number: path
        for batch in batches
        if batch.table == TRACE_FILES
        for number, path in batch.rows.select("file_number", "path").iter_rows()
    }
    return _per_file(pl.concat(rows), paths, written) if rows else []


def _per_file(rows: pl.DataFrame, paths: dict[int, str | None], written: Written) -> list[tuple[Place, FileUse]]:
    path_numbers = {name[1:]: number for number, name in enumerate(written.script.names) if name[0] == "p"}
    is_read = pl.col("direction") == "read"
    size = pl.col("request_bytes").fill_null(0)
    rows = rows.with_columns(pl.col("offset_bytes", "request_bytes").cast(pl.Int64))
    phase = pl.Series(
        np.searchsorted(written.sync_places, rows["start_s"].to_numpy().astype(np.int64), side="right"), dtype=pl.Int64
    )
    # without a known offset, the transfers up to this call count as contiguous
    so_far = pl.when(is_read).then(size).otherwise(0).cum_sum().over("file_number")
    written_so_far = pl.when(~is_read).then(size).otherwise(0).cum_sum().over("file_number")
    is_placed = pl.col("offset_bytes").is_not_null()
    ends = pl.when(is_placed).then(pl.col("offset_bytes") + size).when(is_read).then(so_far).otherwise(written_so_far)
    marked = rows.with_columns(phase=phase, ends=ends, is_placed=is_placed)
    written_ends = pl.when(~is_read).then("ends").otherwise(0).cum_max().over("file_number")
    marked_reads = marked.with_columns(lacks=is_read & (size > 0) & (pl.col("ends") > written_ends))
    per_file = marked_reads.group_by("file_number", maintain_order=True).agg(
        read_bytes=size.filter(is_read).sum(),
        written_bytes=size.filter(~is_read).sum(),
        needed_bytes=pl.col("ends").filter("lacks").max().fill_null(0),
        needed_phase=pl.col("phase").filter("lacks").min().fill_null(NEVER),
        written_phase=pl.col("phase").filter(~is_read).min().fill_null(NEVER),
        end_bytes=pl.col("ends").filter(~is_read & pl.col("is_placed") & (size > 0)).max().fill_null(0),
        is_sized=(is_read | pl.col("is_placed")).all(),
    )
    numbered = [
        (path_numbers.get(paths[row.pop("file_number")] or "", ABSENT), FileUse(**row)) for row in per_file.to_dicts()
    ]
    places = written.script.places
    return [(places[number], use) for number, use in numbered if number in places]
