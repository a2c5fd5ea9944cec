"""Define `Column` and `Table`, from which every schema, check, comment and dictionary page derives."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

Dtype = Literal["text", "int", "real", "bool", "instant", "date", "reals", "ints"]
#: DuckDB types of columns
DUCKDB_TYPES: dict[Dtype, str] = {
    "text": "varchar",
    "int": "bigint",
    "real": "double",
    "bool": "boolean",
    "instant": "timestamptz",
    "date": "date",
    "reals": "double[]",
    "ints": "bigint[]",
}
Layer = Literal["landed", "stage", "samples", "transforms", "quality"]
#: parts of a landed column's value that are replaced by pseudonyms: the whole text (name; uid: a user's number), the
#: names in a job id, each component of a path, each word, quotes in a sentence (said), each string in a JSON list
#: (listed), a host that is not a number (node), each host in a scheduler's list (nodes), a counter's target unless it
#: is a storage target (target). A wait reason keeps Slurm's own code (reason), job_name and comment keep the text that
#: the site's rule extracts, raw keeps nothing
Hiding = Literal[
    "name", "uid", "id", "path", "mount", "words", "said", "listed", "node", "nodes", "target", "reason", "job_name",
    "comment", "raw",
]  # fmt: skip

#: unit, lower and upper bound implied by the ending of a column name; the longest matching ending applies
ENDINGS: dict[str, tuple[str | None, float | None, float | None]] = {
    "_s": ("s", None, None),
    "_us": ("us", None, None),
    "_at": ("UTC", None, None),
    "_on": ("UTC", None, None),
    "_hz": ("Hz", 0, None),
    "_period_s": ("s", 0, None),
    "_iops": ("1/s", 0, None),
    "_operations_per_s": ("1/s", 0, None),
    "_bytes": ("B", 0, None),
    "_operations": ("operations", 0, None),
    "_bytes_per_s": ("B/s", 0, None),
    "_count": (None, 0, None),
    "_ratio": ("1", 0, 1),
    "_ratios": ("1", 0, 1),
    "_confidence": ("1", 0, 1),
    "_probability": ("1", 0, 1),
    "_correlation": ("1", -1, 1),
    "_score": ("1", None, None),
    "_spread": ("octaves", 0, None),
}


@dataclass(frozen=True, slots=True)
class Column:
    """Declares one quantity, with name, type, meaning, unit and bounds.

    Unit and bounds default to those that the name's ending implies (`ENDINGS`); a count's unit is the word before
    `_count`. `low` and `high` are inclusive; `choices` is a closed list. For `reals` and `ints` (a list of numbers,
    such as one per step of a grid, NULL if nothing was measured) the bounds apply to each element. `hides` defines how
    names in the column become pseudonyms, if a site requires them. `initial` is the value of rows that are older than
    the column.
    """

    name: str
    dtype: Dtype
    doc: str
    unit: str | None = None
    nullable: bool = False
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    hides: Hiding | None = None
    initial: str | None = None

    def __post_init__(self) -> None:
        """Derive missing unit and bounds from the name."""
        endings = [ending for ending in ENDINGS if f"_{self.name}".endswith(ending)]
        implied = ENDINGS[max(endings, key=len)] if endings else (None, None, None)
        for name, value in zip(("unit", "low", "high"), implied, strict=True):
            if getattr(self, name) is None:
                object.__setattr__(self, name, value)
        if self.unit is None and self.name.endswith("_count"):
            counted = self.name.removesuffix("_count").rpartition("_")[2]
            object.__setattr__(self, "unit", counted + ("es" if counted.endswith("s") else "s"))

    @property
    def initial_sql(self) -> str:
        """SQL expression of the value in rows that are older than the column."""
        return f"{'null' if self.initial is None else repr(self.initial)}::{DUCKDB_TYPES[self.dtype]}"

    def optional(self) -> Column:
        """Return the same column, nullable."""
        return replace(self, nullable=True)


@dataclass(frozen=True, slots=True)
class Table:
    """Declares one table, with grain, key and columns.

    `partition` names the date column by which the table is rewritten, one day at a time; None means that the whole
    table is rewritten. A large table without days is split into files by the hash of the column that `bucketed_by`
    names. Landed rows are stored in files by the UTC day of the first column (a date or an instant) of `landed_by`,
    sorted by all of these. A table with `is_published` is part of every release.
    """

    name: str
    layer: Layer
    grain: str
    key: tuple[str, ...]
    columns: tuple[Column, ...]
    partition: str | None = None
    bucketed_by: str | None = None
    landed_by: tuple[str, ...] = ()
    is_published: bool = True

    def __hash__(self) -> int:
        # tables are often used as dictionary keys, and hashing all their columns would be slow
        return hash(self.name)

    def column(self, name: str) -> Column:
        """Look up a column by name, or raise KeyError."""
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(f"{self.name} has no column {name}")

    @property
    def bucket_name(self) -> str:
        """Name of the bucket column, e.g. `application_bucket` for `application_id`."""
        assert self.bucketed_by
        return f"{self.bucketed_by.removesuffix('_id')}_bucket"

    @property
    def column_names(self) -> tuple[str, ...]:
        """Names of the columns in schema order."""
        return tuple(column.name for column in self.columns)
