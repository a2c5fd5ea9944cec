"""`iosig who --unknown`: what moves a file system's bytes again and again, and is in no job log."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

import polars as pl
from pydantic import Field

from iosig.answers.documents import Document, Part, columns_of
from iosig.warehouse.contracts.attribution import UNNAMED_PATTERNS
from iosig.warehouse.errors import UsageError
from iosig.warehouse.releases.reading import opened
from iosig.warehouse.releases.releases import Release
from iosig.warehouse.store.store import Store

#: outcomes that say why there is no pattern
_NONE = ("nothing_recurs", "too_short")


@dataclass(frozen=True, slots=True)
class Unknown:
    """The patterns of a file system, those first that moved most; `nothing`: why a direction has none."""

    filesystem: str
    patterns: pl.DataFrame
    nothing: dict[str, str]


def unknown(
    store: Store,
    release: Release,
    filesystem: str,
    direction: str | None = None,
    window: tuple[datetime | None, datetime | None] = (None, None),
) -> Unknown:
    """Return the patterns of a release that appeared in a time, or at all; UsageError for an unknown file system."""
    with opened(store, release, UNNAMED_PATTERNS.name) as connection:
        rows = connection.sql("select * from unnamed_patterns").pl()
    if filesystem not in rows["filesystem"]:
        names = ", ".join(rows["filesystem"].unique().sort()) or "none"
        raise UsageError(f"{filesystem} is no file system that the release has polls of: {names}.")
    own = rows.filter(pl.col("filesystem") == filesystem)
    if direction:
        own = own.filter(pl.col("direction") == direction)
    is_none = pl.col("outcome").is_in(_NONE)
    nothing = dict(own.filter(is_none).select("direction", "outcome").rows())
    patterns = own.filter(~is_none)
    since, until = window
    if since is not None:
        patterns = patterns.filter(pl.col("last_appeared_at") >= since)
    if until is not None:
        patterns = patterns.filter(pl.col("first_appeared_at") < until)
    return Unknown(
        filesystem,
        patterns.sort(-pl.col("appearance_bytes") * pl.col("appearance_count"), "pattern_id"),
        nothing,
    )


class _PatternRow(Part, extra="allow", json_schema_extra=columns_of("unnamed_patterns", but=["filesystem"])):
    """A row of `unnamed_patterns`."""


class PatternsDocument(Document, title="iosig who --unknown"):
    """What comes again, unexplained."""

    format: Literal["iosig-unnamed-patterns/1"] = "iosig-unnamed-patterns/1"
    release_id: str = Field(description="the release")
    filesystem: str = Field(description="the file system")
    pattern_count: int = Field(description="patterns that appeared in the time that was asked for [patterns]")
    nothing: dict[str, str] = Field(description="by direction, why it has none")
    patterns: list[_PatternRow] = Field(description="those that moved most")


def document(told: Unknown, max_count: int, release_id: str) -> PatternsDocument:
    """Return patterns for programs: so many at most, and how many there are."""
    return PatternsDocument(
        release_id=release_id,
        filesystem=told.filesystem,
        pattern_count=told.patterns.height,
        nothing=told.nothing,
        patterns=told.patterns.head(max_count).drop("filesystem").to_dicts(),
    )
