"""Recorder traces: every traced call of every rank, from the raw trace, its text or its Parquet export.

A trace is a folder, or an archive (tar, plain or compressed) of one. The text and the export say less than the raw
trace: neither has the run's start. No form has return values: a request's bytes are those asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from iosig.warehouse.sources.protocol import Batch, Head, Reading, Source

if TYPE_CHECKING:
    from iosig.warehouse.sources.recorder.calls import Rank, Run
    from iosig.warehouse.sources.recorder.files import Files, Form


def sniff(head: Head) -> bool:
    """Return whether the content is an archive of a Recorder trace, or begins with a line of recorder2text."""
    from iosig.warehouse.sources.recorder import files as recorder_files

    return recorder_files.is_text(head.start) or recorder_files.is_in_archive(head.start)


def owns(folder: Path) -> tuple[str, ...]:
    """Return the names of the folder's files that are one Recorder trace; none where it holds none."""
    from iosig.warehouse.sources.recorder import files as recorder_files

    return recorder_files.owned(folder)


def read(path: Path, reading: Reading) -> Iterator[Batch]:
    """Read a trace; ranks that cannot be read are left out, and the trace is not sound then."""
    from iosig.warehouse.sources.recorder import calls, files as recorder_files

    with recorder_files.opened(path) as (form, files):
        yield from calls.landed(opener(form)(files))


def opener(form: Form) -> Callable[[Files], Run[Rank]]:
    """Return what opens traces of that form."""
    from iosig.warehouse.sources.recorder import parquet, raw, text

    return {"raw": raw.opened, "text": text.opened, "parquet": parquet.opened}[form]


SOURCE = Source(
    name="recorder",
    doc="Recorder trace: the raw 2.5 folder, recorder2text's or recorder2parquet's, or a tar archive of one.",
    kind="traces",
    sniff=sniff,
    read=read,
    precedence=10,
    owns=owns,
)
