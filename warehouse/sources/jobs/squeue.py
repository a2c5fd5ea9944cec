"""Read the output of Slurm's `squeue --format`, with fields separated by `|`: the running and waiting jobs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import polars as pl

from iosig.warehouse.contracts.jobs import QUEUE_RECORDS
from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.jobs.fields import COMMENT, Layout, find_failure
from iosig.warehouse.sources.jobs.queue import infer_observation_time, settle_queue
from iosig.warehouse.sources.protocol import Batch, Head, Reading, Source
from iosig.warehouse.sources.rows import times
from iosig.warehouse.sources.rows.field_use import note_fields
from iosig.warehouse.sources.rows.log_lines import blocks
from iosig.warehouse.sources.rows.rejects import build_refused_rows, reject_batches

#: squeue's field headers, in lower case -> iosig's cells
CELLS = {
    "jobid": "job_id",
    "cluster": "cluster",
    "user": "user",
    "account": "account",
    "partition": "partition",
    "state": "state",
    "st": "state",
    "submit_time": "submitted_at",
    "eligible_time": "eligible_at",
    "start_time": "started_at",
    "time_limit": "time_limit",
    "nodes": "node_count",
    "reason": "wait_reason",
    "comment": "comment",
    "name": "job_name",
}
#: field names that never occur in sacct's logs
_OWN = frozenset({"submit_time", "start_time", "time_limit", "time_left", "time", "st"})
#: field names that never occur in squeue's output; squeue writes all names in upper case, and sacct does not
_OF_SACCT = frozenset({"submit", "start", "end", "elapsed", "exitcode", "jobidraw", "allocnodes", "nnodes", "ntasks"})
_SNIFFED_LINES = 20
_NEEDED = ("job_id", "state")
_NO_ANSWER = -1
_TIME = re.compile(r"1[0-9]{9}|20[0-9]{2}-[0-9]{2}-[0-9]{2}[T ][0-9:.]{8,}(?:Z|[+-][0-9:]{4,6})?")
#: format with a separator that no name contains
FORMAT = "^|^".join(["%i", "%u", "%a", "%P", "%T", "%V", "%S", "%l", "%D", "%r", "%k", "%j"])
_REMEDY = f"Run squeue with --format='{FORMAT}', after `date +%s`."


def _parse_header(text: str) -> Layout | None:
    """Parse a header of squeue; None for other lines."""
    layout = Layout.parse(text) if "JOBID" in text.upper() else None
    if layout is None or "jobid" not in layout.fields:
        return None
    names = set(layout.fields)
    is_own = bool(_OWN & names) or ("state" in names and text == text.upper() and not _OF_SACCT & names)
    return layout if is_own else None


def sniff(head: Head) -> bool:
    """Recognize a header of squeue in the first lines."""
    return any(map(_parse_header, [line for line in head.lines if line.strip()][:_SNIFFED_LINES]))


def find_near_miss(head: Head) -> InputRefused | None:
    """Recognize squeue's own table, which truncates names and lacks most times."""
    words = [line.split() for line in head.lines[:_SNIFFED_LINES]]
    if any("JOBID" in line and _OWN & {word.lower() for word in line} for line in words):
        return InputRefused("This is squeue's table with padded columns, which truncates values.", _REMEDY)
    return None


@dataclass(slots=True)
class _Answers:
    """Consecutive outputs in a file: the fields and, if known, the time of each."""

    path: Path
    zone: str | None
    found: list[tuple[Layout, datetime | None]] = field(default_factory=list)
    _at: datetime | None = None
    _is_start: bool = True

    def find_number(self, text: str) -> int | None:
        """Return the number of the output that starts with this line; None for other lines."""
        if _TIME.fullmatch(text.strip()):
            self._at = times.parse(pl.Series([text]), self.zone, "snapshot's")["instant"].item()
            self._is_start = False
            return _NO_ANSWER
        if layout := _parse_header(text):
            if not set(_NEEDED) <= {CELLS.get(name) for name in layout.fields}:
                raise InputRefused("The header of squeue's output lacks JOBID or STATE.", _REMEDY)
            note_fields(CELLS, layout.fields)
            # a line before the first header may have been a time
            self.found.append((layout, infer_observation_time(self.path) if self._is_start else self._at))
            self._at, self._is_start = None, False
            return len(self.found) - 1
        self._is_start &= not text.strip() or text.startswith(COMMENT)
        return None

    def get(self, number: int | None) -> tuple[Layout, datetime | None]:
        """Return the fields and the time of an output; the time is None for an unknown number."""
        return (Layout(()), None) if number is None or number == _NO_ANSWER else self.found[number]


def read(path: Path, reading: Reading) -> Iterator[Batch]:
    """Read one or more outputs, each a header and its lines; a time line (`date +%s`) applies to the next output.

    The first output's time defaults to the epoch seconds in the file's name, or to the file's modification time. The
    last field may contain the separator if no other field may. Raises InputRefused if a header lacks the job or its
    state, and for an error message of squeue.
    """
    answers = _Answers(path, times.require_zone(reading.time_zone))
    for block in blocks(path, answers.find_number):
        yield from reject_batches(block.refused)
        for number in block.rows["header"].unique(maintain_order=True):
            lines = block.rows.filter(pl.col("header").eq_missing(number))
            layout, observed_at = answers.get(number)
            if observed_at is None:
                if failure := find_failure(lines["raw"]):
                    raise failure
                lines = lines.filter(~pl.col("raw").str.starts_with(COMMENT))
                reason = "The time of the query is unknown, or no header precedes it."
                yield from reject_batches(build_refused_rows(lines, reason, _REMEDY))
                continue
            split = layout.split(lines)
            yield from reject_batches(split.refused)
            settled = settle_queue(_cells(split.rows, layout), answers.zone, observed_at)
            yield from settled.batches(QUEUE_RECORDS)


def _cells(lines: pl.DataFrame, layout: Layout) -> pl.DataFrame:
    names = {CELLS[name]: f"field_{place}" for place, name in enumerate(layout.fields) if name in CELLS}
    return lines.select("line", "raw", **{cell: pl.col(name) for cell, name in names.items()})


SOURCE = Source(
    name="squeue",
    doc="Running and waiting jobs of Slurm: `squeue --format` with fields separated by `|`.",
    kind="jobs",
    sniff=sniff,
    read=read,
    precedence=11,
    find_near_miss=find_near_miss,
)
