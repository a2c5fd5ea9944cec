"""`iosig predict`: inputs that are followed, or judged flush by flush, and the figure of their predictions."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from iosig.reports.predictions.evaluations import PredictionView
from iosig.streams.following.followed import Followed
from iosig.streams.following.follower import Follower
from iosig.streams.following.inputs import Folder, Opener
from iosig.streams.following.rows import Row
from iosig.transforms.predictions.predictor import EPOCH_S, Predictor
from iosig.warehouse.contracts import frames
from iosig.warehouse.contracts.predictions import PREDICTIONS
from iosig.warehouse.errors import InputRefused, IosigError, NothingToDo, UsageError
from iosig.warehouse.interrupts import Stop
from iosig.warehouse.printable import one_line
from iosig.warehouse.sources.files.opening import read_head
from iosig.warehouse.sources.protocol import recognize
from iosig.warehouse.store.journal import Journal

#: rows that are kept to be drawn, of an input and direction
_MOST_DRAWN = 100_000
#: folders are left alone for so many times what it took to look for new traces: one in twenty parts of the time
_FOLDER_PAUSES = 19
#: refused lines that are reported of each input
_MAX_REFUSED_LINES = 10


@dataclass(slots=True)
class Session:
    """Inputs whose predictions are reported as they are made.

    report: gets rows of `predictions`. warn: gets sentences about inputs. keeps_inputs: inputs that are over stay in
    `inputs`, to be drawn. inputs: by followed_id. refused_count: inputs that could not be followed.
    refused_line_counts: lines that could not be read, by followed_id.
    """

    opener: Opener
    report: Callable[[list[Row]], None]
    warn: Callable[[str], None]
    is_followed: bool
    keeps_inputs: bool = False
    idle_end_s: float = math.inf
    inputs: dict[str, Followed] = field(default_factory=dict)
    folders: list[Folder] = field(default_factory=list)
    row_count: int = 0
    refused_count: int = 0
    refused_line_counts: dict[str, int] = field(default_factory=dict)
    _follower: Follower = field(init=False)
    _has_one_input: bool = True
    _look_s: float = 0.0
    _fault: str | None = None

    def __post_init__(self) -> None:
        """Follow nothing yet."""
        journal = self.opener.journal
        self._follower = Follower([], self._report, self._refuse, journal, self.idle_end_s, self._note)

    def open(self, paths: Sequence[Path], polls: Sequence[Followed] = ()) -> None:
        """Open traces, folders of traces, and polls."""
        self._add(polls)
        for path in paths:
            if path.is_dir():
                self.folders.append(Folder(path, self.opener))
                continue
            if not self.is_followed:
                _require_trace(path)
            self._add([self.opener.trace(path)])
        self._has_one_input = len(paths) <= 1 and not self.folders
        for folder in self.folders:
            self._add(folder.look())

    def follow(self, interval_s: float, stop: Stop) -> None:
        """Follow until the runs are over, or a signal comes; NothingToDo if all were over before."""
        over = [one for one in self.inputs.values() if one.is_over and not self.folders]
        for one in over:
            name = one_line(one.identity.followed_id)
            self.warn(f"{name} was over; it is followed only if it has gone on, and with --reset from its start.")
        names = [f"the folder {folder.path}" for folder in self.folders] or [one_line(name) for name in self.inputs]
        self.warn(f"Following {names[0] if len(names) == 1 else f'{len(names):,} inputs'}; end with Ctrl-C.")
        self._follower.follow(interval_s, stop, self._new_inputs if self.folders else None)
        is_drawn = self.row_count or self.keeps_inputs
        if over and not is_drawn and all(one.is_over for one in self.inputs.values()):
            raise NothingToDo("Nothing is left to follow.")

    def finish(self) -> None:
        """Judge what is there, flush by flush, as if it were just being written."""
        self._follower.finish()

    def _add(self, found: Sequence[Followed]) -> None:
        """Take inputs, each once, however often it was named."""
        new = {one.identity.followed_id: one for one in found if one.identity.followed_id not in self.inputs}
        self.inputs |= new
        self._follower.followed.extend(new.values())

    def _new_inputs(self) -> list[Followed]:
        """Return traces that are new in the folders, looked for once in a while."""
        begun_s = time.monotonic()
        if begun_s < self._look_s:
            return []
        if not self.keeps_inputs:
            self.inputs = {name: one for name, one in self.inputs.items() if not one.is_over}
        found = {one.identity.followed_id: one for folder in self.folders for one in self._look_in(folder)}
        self._look_s = time.monotonic() + _FOLDER_PAUSES * (time.monotonic() - begun_s)
        new = {name: one for name, one in found.items() if name not in self.inputs or self.inputs[name].is_over}
        self.inputs |= new
        return list(new.values())

    def _look_in(self, folder: Folder) -> list[Followed]:
        try:
            found = folder.look(self._refuse)
        except InputRefused as fault:
            # As of a file system that is away for a while: what is followed already has its own pauses.
            if str(fault) != self._fault:
                self.warn(f"iosig: {fault}")
            self._fault = str(fault)
            return []
        self._fault = None
        return found

    def _report(self, rows: list[Row]) -> None:
        self.report(rows)
        self.row_count += len(rows)

    def _refuse(self, followed_id: str, fault: IosigError) -> None:
        if self._has_one_input:
            raise fault
        self.refused_count += 1
        self.warn(f"{one_line(followed_id)}: {fault}")

    def _note(self, followed_id: str, refused: Sequence[tuple[int, str]]) -> None:
        """Report the first lines of an input that were refused, and that there are more."""
        before = self.refused_line_counts.get(followed_id, 0)
        self.refused_line_counts[followed_id] = before + len(refused)
        name = one_line(followed_id)
        for line, reason in refused[: max(0, _MAX_REFUSED_LINES - before)]:
            self.warn(f"{name}: line {line:,} is refused: {one_line(reason)}")
        if before <= _MAX_REFUSED_LINES < before + len(refused):
            self.warn(f"{name}: more lines are refused.")


def _require_trace(path: Path) -> None:
    """Refuse a file of a format that no program writes while it runs."""
    start = b""
    try:
        head = read_head(path, None)
        start = head.start
        source = recognize(head)
    except InputRefused:
        # it may just have begun
        is_packed = start[:1] >= b"\x80"
        if start and not is_packed and not any(line.lstrip().startswith(b"{") for line in start.splitlines()):
            raise InputRefused(
                f"{path} is no trace of TMIO: it begins neither as JSON Lines nor as MessagePack.",
                "`iosig predict --help` says what is predicted.",
            ) from None
        return
    if source.name != "tmio":
        raise UsageError(
            f"{path} is of the format {source.name}, which is there when a run is over: `iosig period` finds its "
            "period. A prediction is made of TMIO's traces, of a job that runs, or of polls."
        )


# ---- what there is to draw


def busiest(inputs: Iterable[Followed]) -> tuple[Followed, str]:
    """Return the input and direction that moved most; NothingToDo if there is none of which anything was predicted."""
    predicted = [
        (predictor.pyramid.volume_bytes, followed, direction)
        for followed in inputs
        for direction, predictor in sorted(followed.predictors.items())
        if predictor.evaluation_count and not math.isnan(predictor.pyramid.until_s)
    ]
    if not predicted:
        raise NothingToDo("There is nothing to draw: no prediction was made.")
    _, followed, direction = max(predicted, key=lambda each: each[0])
    return followed, direction


def rows_of(journal: Journal, followed: Followed, direction: str) -> list[Row]:
    """Return the last rows of one input and direction that a journal has."""
    last = {name: max(0, one.evaluation_count - _MOST_DRAWN) for name, one in followed.predictors.items()}
    found = journal.evaluations_after(followed.identity.followed_id, last)
    return [row for row in found if row["direction"] == direction]


def view_of(rows: Sequence[Row], predictor: Predictor) -> PredictionView:
    """Return what there is to see of one input and direction: its predictions, and the rate as far as it is kept."""
    pyramid, tracker = predictor.pyramid, predictor.tracker
    window = pyramid.window(predictor.origin_s, pyramid.until_s)
    frame = pl.DataFrame(rows, schema=frames.schema(PREDICTIONS), orient="row")
    return PredictionView(
        frame,
        window.start_s + np.arange(len(window.bytes_per_s)) / window.sampling_hz,
        window.bytes_per_s,
        tracker.onset_s,
        tracker.end_s,
        has_utc_clock=predictor.origin_s >= EPOCH_S,
        graph=predictor.automaton.graph(),
    )


def graph_of(followed: Followed, direction: str) -> Mapping[str, Any]:
    """Return the phase automaton of one input and direction, as plain values."""
    identity = followed.identity
    told = {"followed_id": identity.followed_id, "direction": direction, "run_number": followed.run_number}
    return {**told, **followed.predictors[direction].automaton.graph()}
