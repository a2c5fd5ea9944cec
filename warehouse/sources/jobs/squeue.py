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
from iosig.warehouse.sources.jobs.queue import infer_observation_time, settle_queue
from iosig.warehouse.sources.protocol import Batch, Head, Reading, Source
from iosig.warehouse.sources.rows import times
from iosig.warehouse.sources.rows.log_lines import blocks
from iosig.warehouse.sources.rows.rejects import build_refused_rows, reject_batches

#: squeue's field headers -> iosig's cells
CELLS = {
    "JOBID": "job_id",
    "CLUSTER": "cluster",
    "USER": "user",
    "ACCOUNT": "account",
    "PARTITION": "partition",
    "STATE": "state",
    "ST": "state",
    "SUBMIT_TIME": "submitted_at",
    "ELIGIBLE_TIME": "eligible_at",
    "START_TIME": "started_at",
    "TIME_LIMIT": "time_limit",
    "NODES": "node_count",
    "REASON": "wait_reason",
    "COMMENT": "comment",
    "NAME": "job_name",
}
#: field names that never occur in sacct's logs
_OWN = frozenset({"SUBMIT_TIME", "START_TIME", "TIME_LIMIT", "TIME_LEFT", "TIME", "ST"})
_NEEDED = ("job_id", "state")
#: fields that may contain the delimiter
_FREE_TEXT = ("NAME", "COMMENT")
_NO_ANSWER = -1
_TIME = re.compile(r"1[0-9]{9}|20[0-9]{2}-[0-9]{2}-[0-9]{2}[T ][0-9:.]{8,}(?:Z|[+-][0-9:]{4,6})?")
_REMEDY = "Run squeue with --format='%i|%u|%a|%P|%T|%V|%S|%l|%D|%r|%k|%j', after `date +%s`."


def _layout(text: str) -> tuple[str, ...]:
    return tuple(cell.strip().upper() for cell in text.strip().split("|"))


def _is_header(text: str) -> bool:
    layout = set(_layout(text))
    return "JOBID" in layout and bool(layout & _OWN)


def sniff(head: Head) -> bool:
    """Recognize a header of squeue, optionally after a time."""
    lines = [line.strip() for line in head.lines if line.strip()][:2]
    return any("|" in line and _is_header(line) for line in lines if not _TIME.fullmatch(line))


@dataclass(slots=True)
class _Answers:
    """Consecutive outputs in a file: the fields and, if known, the time of each."""

    path: Path
    zone: str | None
    found: list[tuple[tuple[str, ...], datetime | None]] = field(default_factory=list)
    _at: datetime | None = None
    _is_start: bool = True

    def find_number(self, text: str) -> int | None:
        """Return the number of the output that starts with this line; None for other lines."""
        if _TIME.fullmatch(text.strip()):
            self._at = times.parse(pl.Series([text]), self.zone, "snapshot's")["instant"].item()
            self._is_start = False
            return _NO_ANSWER
        if _is_header(text):
            layout = _layout(text)
            if not set(_NEEDED) <= {CELLS.get(name) for name in layout}:
                raise InputRefused("The header of squeue's output lacks JOBID or STATE.", _REMEDY)
            # a line before the first header may have been a time
            self.found.append((layout, infer_observation_time(self.path) if self._is_start else self._at))
            self._at, self._is_start = None, False
            return len(self.found) - 1
        self._is_start &= not text.strip()
        return None

    def get(self, number: int | None) -> tuple[tuple[str, ...], datetime | None]:
        """Return the fields and the time of an output; the time is None for an unknown number."""
        return ((), None) if number is None or number == _NO_ANSWER else self.found[number]


def read(path: Path, reading: Reading) -> Iterator[Batch]:
    """Read one or more outputs, each a header and its lines; a time line (`date +%s`) applies to the next output.

    The first output's time defaults to the epoch seconds in the file's name, or to the file's modification time. The
    last field may contain the delimiter. Raises InputRefused if a header lacks the job or its state.
    """
    answers = _Answers(path, times.require_zone(reading.time_zone))
    for block in blocks(path, answers.find_number):
        yield from reject_batches(block.refused)
        for number in block.rows["header"].unique(maintain_order=True):
            lines = block.rows.filter(pl.col("header").eq_missing(number))
            layout, observed_at = answers.get(number)
            if observed_at is None:
                reason = "The time of the query is unknown, or no header precedes it."
                yield from reject_batches(build_refused_rows(lines, reason, _REMEDY))
                continue
            count = pl.col("raw").str.count_matches("|", literal=True) + 1
            fits = count >= len(layout) if layout[-1] in _FREE_TEXT else count == len(layout)
            reason = f"The line has other fields than the header's {len(layout)}."
            yield from reject_batches(build_refused_rows(lines.filter(~fits), reason, _REMEDY))
            settled = settle_queue(_cells(lines.filter(fits), layout), answers.zone, observed_at)
            yield from settled.batches(QUEUE_RECORDS)


def _cells(lines: pl.DataFrame, layout: tuple[str, ...]) -> pl.DataFrame:
    parts = pl.col("raw").str.splitn("|", len(layout)).alias("parts")
    cells = {
        CELLS[name]: pl.col("parts").struct.field(f"field_{place}")
        for place, name in enumerate(layout)
        if name in CELLS
    }
    return lines.with_columns(parts).select("line", "raw", **cells)


SOURCE = Source(
    name="squeue",
    doc="Running and waiting jobs of Slurm: `squeue --format` with fields separated by `|`.",
    kind="jobs",
    sniff=sniff,
    read=read,
    precedence=11,
)
