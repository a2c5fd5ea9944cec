"""`iosig patterns`: query recurring patterns in the traffic that no logged job explains."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

import polars as pl
from pydantic import Field

from iosig.answers.documents import Document, Part, make_columns_schema
from iosig.warehouse.contracts.attribution import UNATTRIBUTED_PATTERNS
from iosig.warehouse.errors import UsageError
from iosig.warehouse.releases.reading import open_release
from iosig.warehouse.releases.releases import Release
from iosig.warehouse.store.store import Store

#: outcomes of rows without a pattern
_NONE = ("no_pattern", "too_short")


@dataclass(frozen=True, slots=True)
class UnattributedPatterns:
    """Patterns of a file system by decreasing volume, and directions without a pattern with their outcome."""

    filesystem: str
    patterns: pl.DataFrame
    without_patterns: dict[str, str]


def find_patterns(
    store: Store,
    release: Release,
    filesystem: str,
    direction: str | None = None,
    window: tuple[datetime | None, datetime | None] = (None, None),
) -> UnattributedPatterns:
    """Query the patterns that occurred in a time range; raises UsageError for an unknown file system."""
    with open_release(store, release, UNATTRIBUTED_PATTERNS.name) as connection:
        rows = connection.sql("select * from unattributed_patterns").pl()
    if filesystem not in rows["filesystem"]:
        names = ", ".join(rows["filesystem"].unique().sort()) or "none"
        raise UsageError(f"The release has no polls of file system {filesystem}, only of: {names}.")
    selected = rows.filter(pl.col("filesystem") == filesystem)
    if direction:
        selected = selected.filter(pl.col("direction") == direction)
    is_none = pl.col("outcome").is_in(_NONE)
    without_patterns = dict(selected.filter(is_none).select("direction", "outcome").rows())
    patterns = selected.filter(~is_none)
    since, until = window
    if since is not None:
        patterns = patterns.filter(pl.col("last_occurrence_at") >= since)
    if until is not None:
        patterns = patterns.filter(pl.col("first_occurrence_at") < until)
    return UnattributedPatterns(
        filesystem,
        patterns.sort(-pl.col("occurrence_bytes") * pl.col("occurrence_count"), "pattern_id"),
        without_patterns,
    )


class _PatternRow(
    Part, extra="allow", json_schema_extra=make_columns_schema("unattributed_patterns", exclude=["filesystem"])
):
    """Columns of `unattributed_patterns`, except the file system."""


class PatternsDocument(Document, title="iosig patterns"):
    """Recurring patterns in unattributed traffic."""

    format: Literal["iosig-unattributed-patterns/1"] = "iosig-unattributed-patterns/1"
    release_id: str = Field(description="the release")
    filesystem: str = Field(description="the file system")
    pattern_count: int = Field(description="patterns that occurred in the time range [patterns]")
    without_patterns: dict[str, str] = Field(description="directions without a pattern, and why")
    patterns: list[_PatternRow] = Field(description="patterns with most bytes")


def build_document(result: UnattributedPatterns, max_count: int, release_id: str) -> PatternsDocument:
    """Build the JSON document with at most `max_count` patterns and the total count."""
    return PatternsDocument(
        release_id=release_id,
        filesystem=result.filesystem,
        pattern_count=result.patterns.height,
        without_patterns=result.without_patterns,
        patterns=result.patterns.head(max_count).drop("filesystem").to_dicts(),
    )
