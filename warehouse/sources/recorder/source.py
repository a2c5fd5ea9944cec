"""Read Recorder traces: every traced call of every rank, from the raw trace, its text or its Parquet export.

A trace is a folder, or a tar archive (plain or compressed) of a folder. The text and the export lack the run's start.
No form has return values, so a request's bytes are the requested ones.
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
    """Recognize an archive of a Recorder trace, or a line of recorder2text."""
    from iosig.warehouse.sources.recorder import files as recorder_files

    return recorder_files.is_text(head.start) or recorder_files.is_in_archive(head.start)


def owns(folder: Path) -> tuple[str, ...]:
    """List the files in a folder that form one Recorder trace; empty if the folder has none."""
    from iosig.warehouse.sources.recorder import files as recorder_files

    return recorder_files.list_trace_files(folder)


def read(path: Path, reading: Reading) -> Iterator[Batch]:
    """Read a trace; unreadable ranks are skipped, which makes the trace partial."""
    from iosig.warehouse.sources.recorder import calls, files as recorder_files

    with recorder_files.open_trace(path) as (form, files):
        yield from calls.read_run(get_opener(form)(files))


def get_opener(form: Form) -> Callable[[Files], Run[Rank]]:
    """Return the function that opens traces of this form."""
    from iosig.warehouse.sources.recorder import parquet, raw, text

    return {"raw": raw.open_run, "text": text.open_run, "parquet": parquet.open_run}[form]


SOURCE = Source(
    name="recorder",
    doc="Recorder trace: the raw 2.5 folder, recorder2text's or recorder2parquet's, or a tar archive of one.",
    kind="traces",
    sniff=sniff,
    read=read,
    precedence=10,
    owns=owns,
)
