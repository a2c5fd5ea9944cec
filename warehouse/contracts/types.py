"""The two declarations from which every schema, check, comment and page of the dictionary derives."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

Dtype = Literal["text", "int", "real", "bool", "instant", "date", "reals", "ints"]
#: what DuckDB calls the types of columns
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
#: how names in a landed column become pseudonyms: the whole text (name; uid: the number of a user), the names in a job
#: id, each part of a path, each word, quotes in a sentence (said), each text of a JSON list (listed), a host that is no
#: number (node), each host of a scheduler's list (nodes), a counter's target that is no storage (target). Of a wait
#: reason Slurm's own code is kept (reason), of job_name and comment what the site's rule extracts, of raw nothing
Hiding = Literal[
    "name", "uid", "id", "path", "mount", "words", "said", "listed", "node", "nodes", "target", "reason", "job_name",
    "comment", "raw",
]  # fmt: skip

#: what a name's ending says: the unit, and the bounds that no value can leave; the longest ending counts
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
    """One quantity, declared once: what it is called, what it holds, in which unit, within which bounds.

    The name's ending tells the unit and the bounds (`ENDINGS`) where none are given; a count's unit is what it counts,
    the word before `_count`. `low` and `high` are inclusive; `choices` is a closed list. For `reals` and `ints` (a list
    of numbers, such as one per step of a grid, NULL where nothing was measured) the bounds hold for each element.
    `hides` says how names in it become pseudonyms, where a site wants that.
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

    def __post_init__(self) -> None:
        """Take what is not given from the name."""
        endings = [ending for ending in ENDINGS if f"_{self.name}".endswith(ending)]
        told = ENDINGS[max(endings, key=len)] if endings else (None, None, None)
        for name, value in zip(("unit", "low", "high"), told, strict=True):
            if getattr(self, name) is None:
                object.__setattr__(self, name, value)
        if self.unit is None and self.name.endswith("_count"):
            counted = self.name.removesuffix("_count").rpartition("_")[2]
            object.__setattr__(self, "unit", counted + ("es" if counted.endswith("s") else "s"))

    def optional(self) -> Column:
        """Return the same column where a table may leave it NULL."""
        return replace(self, nullable=True)


@dataclass(frozen=True, slots=True)
class Table:
    """One table, declared once: what a row is, which columns tell rows apart, what the columns are.

    `partition` names the date column by which the table is rewritten, a day at a time; None means
    that the whole table is rewritten. `bucketed_by` names the column by whose hash a large table that has no days lies
    in several files. Rows that land lie in files by the UTC day of the first column (a date or an instant) that
    `landed_by` names, in the order of all these. `is_published` tables are part of every release.
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
        # tables are keys everywhere; the hash of all their columns takes longer than what is looked up
        return hash(self.name)

    def column(self, name: str) -> Column:
        """Return the column of that name, or raise KeyError."""
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(f"{self.name} has no column {name}")

    @property
    def bucket_name(self) -> str:
        """What the bucket of a row is called: `application_bucket`."""
        assert self.bucketed_by
        return f"{self.bucketed_by.removesuffix('_id')}_bucket"

    @property
    def column_names(self) -> tuple[str, ...]:
        """The columns' names, in order."""
        return tuple(column.name for column in self.columns)
