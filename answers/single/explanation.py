"""Explain how one input is read, without landing it: its format, the fields taken and ignored, and the first rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import polars as pl
from pydantic import Field

from iosig.answers.documents import Document
from iosig.settings.model import Settings
from iosig.streams.landing import ReadOptions, make_reading
from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.files.limits import Limits, apply_limits
from iosig.warehouse.sources.protocol import Source, find_folder_source, get_source
from iosig.warehouse.sources.rows.field_use import record_fields
from iosig.warehouse.store.landing import find_source
from iosig.warehouse.store.pseudonyms import Names

#: number of rows of each table that are shown; number of rows after which reading stops
SHOWN_ROWS, _READ_ROWS = 5, 10_000
#: columns that landing fills
_OF_LANDING = ("landing_id", "source_file", "trace_id")


@dataclass(frozen=True, slots=True)
class Explanation:
    """How one input is read.

    taken: iosig's column of each field of the input; ignored: its other fields. rows: the first rows of each landed
    table, only with columns that have values. row_counts: rows read of each table; is_complete: whether these are all.
    refusal: the reason if the input is refused.
    """

    source: Source | None
    taken: Mapping[str, str]
    ignored: tuple[str, ...]
    rows: Mapping[str, pl.DataFrame]
    row_counts: Mapping[str, int]
    is_complete: bool
    refusal: InputRefused | None = None


class ExplanationDocument(Document, title="iosig land --explain"):
    """How one input is read, one line each."""

    format: Literal["iosig-explanation/1"] = "iosig-explanation/1"
    file: str = Field(description="path of the input")
    input_format: str | None = Field(description="the recognized format; null if none is")
    taken: dict[str, str] = Field(description="field of the input = column of iosig")
    ignored: list[str] = Field(description="other fields of the input")
    row_counts: dict[str, int] = Field(description="landed table = rows that were read [rows]")
    is_complete: bool = Field(description="whether the whole input was read")
    rows: dict[str, list[dict[str, Any]]] = Field(description="landed table = its first rows")
    reason: str | None = Field(description="why the input is refused; null if it is not")
    remedy: str | None = Field(description="what to do about the refusal")


def explain_input(
    path: Path,
    settings: Settings,
    read_options: ReadOptions,
    format_name: str | None = None,
    names: Names | None = None,
) -> Explanation:
    """Read the start of an input as landing does, and return what it found; nothing lands.

    names: pseudonyms, in a private warehouse.
    """
    source, refusal, is_complete = None, None, True
    found: dict[str, list[pl.DataFrame]] = {}
    with apply_limits(settings.limits.params(Limits)), record_fields() as use:
        try:
            source = _find_source(path, settings, format_name)
            for batch in source.read(path, make_reading(source, settings, read_options)):
                rows = batch.rows if names is None else names.hide(batch.table, batch.rows)
                found.setdefault(batch.table.name, []).append(rows)
                if sum(frame.height for frames in found.values() for frame in frames) >= _READ_ROWS:
                    is_complete = False
                    break
        except InputRefused as error:
            refusal = error if names is None else InputRefused(names.said(error.reason), names.said(error.remedy))
    return Explanation(
        source,
        use.taken,
        tuple(use.ignored),
        {name: _shown(frames) for name, frames in found.items()},
        {name: sum(frame.height for frame in frames) for name, frames in found.items()},
        is_complete,
        refusal,
    )


def _find_source(path: Path, settings: Settings, format_name: str | None) -> Source:
    owned = find_folder_source(path, get_source(format_name) if format_name else None) if path.is_dir() else None
    if path.is_dir() and owned is None:
        raise InputRefused("This is a folder, but not a trace.", "Name a file in it.")
    return owned[0] if owned else find_source(path, settings.polls.columns, format_name)


def _shown(frames: list[pl.DataFrame]) -> pl.DataFrame:
    rows = pl.concat([frame.head(SHOWN_ROWS) for frame in frames]).head(SHOWN_ROWS)
    filled = [name for name in rows.columns if rows[name].null_count() < rows.height and name not in _OF_LANDING]
    return rows.select(filled)


def make_document(name: str, explanation: Explanation) -> ExplanationDocument:
    """Convert an explanation of the input `name` to its JSON document."""
    refusal = explanation.refusal
    return ExplanationDocument(
        file=name,
        input_format=explanation.source.name if explanation.source else None,
        taken=dict(explanation.taken),
        ignored=list(explanation.ignored),
        row_counts=dict(explanation.row_counts),
        is_complete=explanation.is_complete,
        rows={table: rows.to_dicts() for table, rows in explanation.rows.items()},
        reason=refusal.reason if refusal else None,
        remedy=refusal.remedy if refusal else None,
    )
