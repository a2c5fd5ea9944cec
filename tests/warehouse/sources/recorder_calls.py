"""Build Recorder's calls for tests, from the output of recorder2text or from short texts."""

from __future__ import annotations

import tarfile
from collections.abc import Iterable
from pathlib import Path

import polars as pl
import zstandard

from iosig.warehouse.contracts import frames
from iosig.warehouse.contracts.traces import TRACE_CALLS
from iosig.warehouse.sources.recorder.requests import Requests
from tests.warehouse.sources.batch_reading import Tables, tables_of

MODULES = {"0": "POSIX", "1": "MPIIO", "2": "MPI", "3": "HDF5"}


def of_text(lines: Iterable[str], rank: int = 0) -> pl.DataFrame:
    """Return the calls of a rank's text."""
    rows = []
    for number, line in enumerate(lines):
        began, ceased, function, level, kind, _, *words, _ = line.split(" ")
        rows.append(
            ("", rank, number, int(level), MODULES[kind], function, " ".join(words), float(began), float(ceased))
        )
    return pl.DataFrame(rows, frames.schema(TRACE_CALLS), orient="row")


def made(*calls: str, rank: int = 0) -> pl.DataFrame:
    """Return calls written as `function arguments`, or `+function arguments` if nested; each takes a second."""
    lines = []
    for second, call in enumerate(calls):
        function, _, words = call.lstrip("+").partition(" ")
        kind = 1 if function.startswith("MPI_File_") else 2 if function.startswith("MPI_") else 0
        lines.append(f"{second}.0 {second}.5 {function} {call.count('+')} {kind} ( {words}{' ' * bool(words)})")
    return of_text(lines, rank)


def of_archive(path: Path) -> pl.DataFrame:
    """Return the calls of all ranks in an archive of text."""
    with zstandard.open(path) as stream, tarfile.open(fileobj=stream, mode="r|") as archive:
        texts = {
            int(Path(member.name).stem): content.read().decode()
            for member in archive
            if (content := archive.extractfile(member)) is not None
        }
    return pl.concat([of_text(texts[rank].splitlines(), rank) for rank in sorted(texts)])


def found(*parts: pl.DataFrame) -> Tables:
    """Return the output of `Requests` by table for calls added in parts; validate each batch against its contract."""
    requests = Requests()
    batches = [batch for part in parts for batch in requests.add(part)]
    return tables_of([*batches, *requests.finish()])
