"""`iosig predict`: follow inputs live or replay them flush by flush, predict their bursts, and build figure data."""

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
from iosig.streams.following.followed import FollowedInput
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

#: maximum number of rows that are drawn per input and direction
_MAX_DRAWN = 100_000
#: pause between scans of folders, in multiples of the scan's duration, so that scans take 5 % of the time
_FOLDER_PAUSES = 19
#: maximum refused lines reported per input
_MAX_REFUSED_LINES = 10


@dataclass(slots=True)
class Session:
    """Inputs that are followed, with callbacks for their predictions.

    report: callback for rows of `predictions`. warn: callback for messages about inputs. keeps_inputs: keep finished
    inputs in `inputs` for the figure. inputs: keyed by followed_id. refused_count: inputs that could not be followed.
    refused_line_counts: unreadable lines by followed_id.
    """

    opener: Opener
    report: Callable[[list[Row]], None]
    warn: Callable[[str], None]
    is_followed: bool
    keeps_inputs: bool = False
    idle_end_s: float = math.inf
    inputs: dict[str, FollowedInput] = field(default_factory=dict)
    folders: list[Folder] = field(default_factory=list)
    row_count: int = 0
    refused_count: int = 0
    refused_line_counts: dict[str, int] = field(default_factory=dict)
    _follower: Follower = field(init=False)
    _has_one_input: bool = True
    _look_s: float = 0.0
    _fault: str | None = None

    def __post_init__(self) -> None:
        """Create the follower, without inputs."""
        journal = self.opener.journal
        self._follower = Follower([], self._report, self._refuse, journal, self.idle_end_s, self._note)

    def open(self, paths: Sequence[Path], polls: Sequence[FollowedInput] = ()) -> None:
        """Open traces, folders of traces, and polls; new traces in the folders are found later."""
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
        """Follow until all runs have ended or `stop` is set; raises NothingToDo if all had ended before."""
        ended = [followed for followed in self.inputs.values() if followed.is_over and not self.folders]
        for followed in ended:
            name = one_line(followed.identity.followed_id)
            self.warn(f"{name} had ended. It is followed from where it continued; to start over, pass --reset.")
        names = [f"the folder {folder.path}" for folder in self.folders] or [one_line(name) for name in self.inputs]
        self.warn(f"Following {names[0] if len(names) == 1 else f'{len(names):,} inputs'}. Press Ctrl-C to stop.")
        self._follower.follow(interval_s, stop, self._new_inputs if self.folders else None)
        is_drawn = self.row_count or self.keeps_inputs
        if ended and not is_drawn and all(followed.is_over for followed in self.inputs.values()):
            raise NothingToDo("All followed inputs have ended.")

    def finish(self) -> None:
        """Evaluate the existing data flush by flush, as if it were being written now."""
        self._follower.finish()

    def _add(self, inputs: Sequence[FollowedInput]) -> None:
        """Add inputs, skipping those already present."""
        new = {
            followed.identity.followed_id: followed
            for followed in inputs
            if followed.identity.followed_id not in self.inputs
        }
        self.inputs |= new
        self._follower.followed.extend(new.values())

    def _new_inputs(self) -> list[FollowedInput]:
        """Return new traces in the folders; scans are rate-limited by `_FOLDER_PAUSES`."""
        started_s = time.monotonic()
        if started_s < self._look_s:
            return []
        if not self.keeps_inputs:
            self.inputs = {name: followed for name, followed in self.inputs.items() if not followed.is_over}
        candidates = {
            followed.identity.followed_id: followed for folder in self.folders for followed in self._look_in(folder)
        }
        self._look_s = time.monotonic() + _FOLDER_PAUSES * (time.monotonic() - started_s)
        new = {
            name: followed
            for name, followed in candidates.items()
            if name not in self.inputs or self.inputs[name].is_over
        }
        self.inputs |= new
        return list(new.values())

    def _look_in(self, folder: Folder) -> list[FollowedInput]:
        try:
            inputs = folder.look(self._refuse)
        except InputRefused as fault:
            # The file system may be temporarily unavailable; followed inputs have their own retries.
            if str(fault) != self._fault:
                self.warn(f"iosig: {fault}")
            self._fault = str(fault)
            return []
        self._fault = None
        return inputs

    def _report(self, rows: list[Row]) -> None:
        self.report(rows)
        self.row_count += len(rows)

    def _refuse(self, followed_id: str, fault: IosigError) -> None:
        if self._has_one_input:
            raise fault
        self.refused_count += 1
        self.warn(f"{one_line(followed_id)}: {fault}")

    def _note(self, followed_id: str, refused: Sequence[tuple[int, str]]) -> None:
        """Warn about the first refused lines of an input, and once that there are more."""
        before = self.refused_line_counts.get(followed_id, 0)
        self.refused_line_counts[followed_id] = before + len(refused)
        name = one_line(followed_id)
        for line, reason in refused[: max(0, _MAX_REFUSED_LINES - before)]:
            self.warn(f"{name}: line {line:,} is refused: {one_line(reason)}")
        if before <= _MAX_REFUSED_LINES < before + len(refused):
            self.warn(f"{name}: more lines are refused.")


def _require_trace(path: Path) -> None:
    """Refuse a file of a format that is written only after a run has ended."""
    start = b""
    try:
        head = read_head(path, None)
        start = head.start
        source = recognize(head)
    except InputRefused:
        # an unrecognized file may have just been started
        is_packed = start[:1] >= b"\x80"
        if start and not is_packed and not any(line.lstrip().startswith(b"{") for line in start.splitlines()):
            raise InputRefused(
                f"{path} is not a TMIO trace: it starts neither as JSON Lines nor as MessagePack.",
                "`iosig predict --help` lists the supported inputs.",
            ) from None
        return
    if source.name != "tmio":
        raise UsageError(
            f"{path} has the format {source.name}, which is written when a run has ended: `iosig period` finds its "
            "period. Predictions are made from TMIO traces, running jobs, or polls."
        )


# ---- figure


def find_busiest(inputs: Iterable[FollowedInput]) -> tuple[FollowedInput, str]:
    """Return the input and direction with the largest volume; raises NothingToDo if there are no predictions."""
    predicted = [
        (predictor.pyramid.volume_bytes, followed, direction)
        for followed in inputs
        for direction, predictor in sorted(followed.predictors.items())
        if predictor.evaluation_count and not math.isnan(predictor.pyramid.until_s)
    ]
    if not predicted:
        raise NothingToDo("Nothing to draw: no predictions were made.")
    _, followed, direction = max(predicted, key=lambda item: item[0])
    return followed, direction


def read_rows(journal: Journal, followed: FollowedInput, direction: str) -> list[Row]:
    """Read the last predictions of an input and direction from a journal."""
    last = {name: max(0, predictor.evaluation_count - _MAX_DRAWN) for name, predictor in followed.predictors.items()}
    rows = journal.evaluations_after(followed.identity.followed_id, last)
    return [row for row in rows if row["direction"] == direction]


def build_view(rows: Sequence[Row], predictor: Predictor) -> PredictionView:
    """Build the figure data of an input and direction: its predictions, and the retained part of the rate."""
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


def export_graph(followed: FollowedInput, direction: str) -> Mapping[str, Any]:
    """Return the phase automaton of an input and direction as JSON-compatible values."""
    identity = followed.identity
    fields = {"followed_id": identity.followed_id, "direction": direction, "run_number": followed.run_number}
    return {**fields, **followed.predictors[direction].automaton.graph()}
