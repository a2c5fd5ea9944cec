"""Read DFTracer traces: one JSON line per call, one file per process.

A trace is a folder of such files, or a single file. Times are microseconds since 1970.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.protocol import Batch, Head, Reading, Source

_NAME = re.compile(r".+\.pfw(?:\.gz)?", re.S)
_BLANK = " \t\r\n["
_MEMBERS = ('"name"', '"cat"', '"pid"', '"tid"', '"ph"')
_PHASE = re.compile(r'"ph"\s*:\s*(?:"[XMC]"|[1-4]\b)')
_MAX_SNIFFED_FILES, _SNIFFED_LINES = 8, 20


def sniff(head: Head) -> bool:
    """Recognize a DFTracer event in the first lines."""
    return any(map(_is_event, [line.lstrip(_BLANK) for line in head.lines[:_SNIFFED_LINES]]))


def _is_event(line: str) -> bool:
    return line.startswith("{") and all(member in line for member in _MEMBERS) and _PHASE.search(line) is not None


def owns(folder: Path) -> tuple[str, ...]:
    """List the files in a folder that form one trace, two or more, since a single file is an input of its own."""
    from iosig.warehouse.sources.files.opening import read_head

    try:
        paths = sorted(path for path in folder.iterdir() if _NAME.fullmatch(path.name) and path.is_file())
    except OSError:
        return ()
    if len(paths) < 2:
        return ()
    for path in islice(paths, _MAX_SNIFFED_FILES):
        try:
            if sniff(read_head(path)):
                return tuple(path.name for path in paths)
        except (InputRefused, OSError):
            continue
    return ()


def read(path: Path, reading: Reading) -> Iterator[Batch]:
    """Read one traced run; an unreadable process file is skipped, which makes the trace partial."""
    from iosig.warehouse.sources.dftracer import run

    names = owns(path) if path.is_dir() else ()
    if path.is_dir() and not names:
        raise InputRefused("The folder has no DFTracer trace.", "Pass the folder of a run's .pfw files.")
    yield from run.read_run([(name, path / name) for name in names] or [(path.name, path)])


SOURCE = Source(
    name="dftracer",
    doc="DFTracer trace (.pfw, .pfw.gz): a file, or a folder of the files of a run's processes.",
    kind="traces",
    sniff=sniff,
    read=read,
    precedence=10,
    owns=owns,
)
