"""Run models on small tables written as text, filled with defaults and validated against the contracts.

A table is a header and rows of words; `.` is NULL. Instants are `10:00:00` on the ninth of February 2018 or
`10T00:00:02` on the tenth, dates are days of that month, lists are `1,.,3`. Columns that a text does not name get a
default value.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

import duckdb
import polars as pl
from polars.testing import assert_frame_equal

from iosig.warehouse.contracts import Table, frames, table
from iosig.warehouse.contracts.application_ids import UNKNOWN_CLUSTER, make_application_id
from iosig.warehouse.store import models

DAY = date(2018, 2, 9)
NOON = datetime(2018, 2, 9, 12, tzinfo=UTC)
DAYS = [DAY.replace(day=number) for number in range(1, 29)]

#: columns that the engine adds to the contract's columns
LANDED = {"part_order": pl.Int64, "part_row": pl.Int64, "landing_id": pl.String}
SUBJECT = ("subject_id", "filesystem", "direction", "metric")
#: tables that a step builds from its settings and its work item
FRAMES: dict[str, dict[str, Any]] = {
    "settings.cluster_machines": {"cluster": pl.String, "machine": pl.String},
    "settings.filesystem_aliases": {"name": pl.String, "filesystem": pl.String},
    "settings.partition_filesystems": {"partition": pl.String, "filesystem": pl.String},
    "run.rebuilt_days": {"table_name": pl.String, "day": pl.Date},
    "run.released_answers": {"subject_kind": pl.String, **dict.fromkeys(SUBJECT, pl.String)},
}
PARAMETERS: dict[str, Any] = {
    "days": DAYS,
    "has_undated": True,
    "subject_kinds": ["application", "job", "series", "trace"],
    "first_polled_on": None,
    "last_polled_on": None,
    "beginning_filesystems": [],
    "application_pattern": "^(.*)$",
    "filesystem_pattern": r"\bfs=(\w+)",
    "shared_partitions": [],
    "excludes_shared_nodes": False,
    "max_controller_bytes_per_s": None,
    "clock_tolerance_s": 60.0,
    "max_excess_ratio": 0.05,
    "grace_s": 600.0,
    "samples_from": "best",
    "min_sample_count": 5,
    "min_expected_correlation": 0.6,
    "max_duration_s": 1000.0,
    "max_application_count": 2,
}
_HARMLESS: dict[str, Any] = {
    "interval_s": 2.0,
    "landing_id": "landing",
    "part_order": 0,
    "is_application_run": True,
    "is_owner": True,
    "outcome": "measured",
}
_RUN = {"ended_on": DAY, "started_at": NOON - timedelta(hours=1), "ended_at": NOON}
_GRID = {"interval_s": 2.0, "step_us": 2_000_000, "phase_us": 0, "expected_controller_count": 1}
#: nullable columns that are set by default, because models exclude rows where they are NULL
_FILLED: dict[str, dict[str, Any]] = {
    "stage.jobs": _RUN | {"machine": UNKNOWN_CLUSTER},
    "run.released_answers": {"metric": "bytes"},
    "samples.runs": _RUN | _GRID | {"filesystem": "filesystem", "first_step": 1, "last_step": 10},
}
_BY_DTYPE: dict[Any, Any] = {
    pl.Int64: 0,
    pl.Float64: 0.0,
    pl.Boolean: False,
    pl.Date: DAY,
    pl.List(pl.Float64): [],
    pl.List(pl.Int64): [],
}


class Select(Protocol):
    """The fixture `select`: it runs a model on tables given by `layer.name`, with all other tables empty."""

    def __call__(self, model: Table, given: Mapping[str, str | pl.DataFrame], /, **parameters: Any) -> pl.DataFrame: ...


def select(
    connection: duckdb.DuckDBPyConnection, model: Table, given: Mapping[str, str | pl.DataFrame], parameters: Any
) -> pl.DataFrame:
    """Run a model and validate its result against the contract: schema, rules and key."""
    unread = given.keys() - set(inputs(model))
    assert not unread, f"{model.name} does not read {unread}"
    for name in inputs(model):
        content = given.get(name, "")
        layer, _, short = name.partition(".")
        frame = rows(name, content) if isinstance(content, str) else content
        models.expose_frame(connection, layer, short, frame)
    found = frames.require(models.select(connection, model, PARAMETERS | parameters), model)
    repeated = found.filter(pl.struct(model.key).is_duplicated())
    assert repeated.is_empty(), f"{model.name}: {model.key} tells rows not apart: {repeated.rows()}"
    return found


def select_alone(model: Table, given: Mapping[str, str | pl.DataFrame], **parameters: Any) -> pl.DataFrame:
    """Run a model in a separate engine, for tests without the fixture."""
    with TemporaryDirectory() as folder, models.engine(Path(folder), "1GB") as connection:
        return select(connection, model, given, parameters)


def inputs(model: Table) -> list[str]:
    """Return the tables that a model reads, as `layer.name`."""
    statement = models.model_path(model).read_text().partition("\n")[2]
    return sorted(set(re.findall(r"(?<!distinct )\bfrom (\w+\.\w+)", statement)))


def schema(name: str) -> dict[str, Any]:
    """Return the columns of a table as a model sees it."""
    layer, _, short = name.partition(".")
    if name in FRAMES:
        return FRAMES[name]
    known: dict[str, Any] = dict(frames.schema(table(short)))
    return known | LANDED if layer == "landed" else known


def rows(name: str, text: str) -> pl.DataFrame:
    """Parse a text as rows of a table and fill the columns that it does not name."""
    return filled(name, _words(text, schema(name)))


def filled(name: str, given: pl.DataFrame) -> pl.DataFrame:
    """Return rows of a table with missing columns filled with defaults."""
    columns = schema(name)
    counted = {"part_row": range(given.height), "line": range(1, given.height + 1)}
    full = given.with_columns(
        pl.Series(column, counted[column], dtype=columns[column])
        if column in counted
        else pl.lit(_filling(name, column, dtype), dtype).alias(column)
        for column, dtype in columns.items()
        if column not in given.columns
    )
    if name == "stage.jobs" and "application_id" not in given.columns:
        parts = full.select(pl.lit(UNKNOWN_CLUSTER), "user", "application", "node_count")
        ids = [make_application_id(*row) for row in parts.iter_rows()]
        full = full.with_columns(application_id=pl.Series(ids, dtype=pl.String))
    return full.select(*columns)


def _filling(name: str, column: str, dtype: Any) -> Any:
    short = name.partition(".")[2]
    declared = None if column in LANDED or name in FRAMES else table(short).column(column)
    if column in _FILLED.get(name, {}):
        return _FILLED[name][column]
    if declared and declared.nullable:
        return None
    if column in _HARMLESS:
        return _HARMLESS[column]
    if declared and declared.choices:
        return declared.choices[0]
    if isinstance(dtype, pl.Datetime):
        return NOON
    return _BY_DTYPE.get(dtype, column)


def _words(text: str, columns: Mapping[str, Any]) -> pl.DataFrame:
    header, *lines = [line.split() for line in text.strip().splitlines() if line.strip()] or [[]]
    return pl.DataFrame(
        {
            name: pl.Series([_value(line[place], columns[name]) for line in lines], dtype=columns[name])
            for place, name in enumerate(header)
        }
    )


def _value(word: str, dtype: Any) -> Any:
    if word == ".":
        return None
    if isinstance(dtype, pl.Datetime):
        return at(word)
    if dtype == pl.Date:
        return DAY.replace(day=int(word))
    if dtype == pl.Boolean:
        return {"yes": True, "no": False}[word]
    if isinstance(dtype, pl.List):
        number = int if dtype == pl.List(pl.Int64) else float
        return [None if item == "." else number(item) for item in word.split(",")]
    return float(word) if dtype == pl.Float64 else int(word) if dtype == pl.Int64 else word


def at(word: str) -> datetime:
    """Parse an instant."""
    day, _, time = word.rpartition("T")
    return datetime.fromisoformat(f"2018-02-{int(day or 9):02d}T{time}+00:00")


def expect(found: pl.DataFrame, text: str) -> None:
    """Assert that the rows equal the rows of the text, in order, in the named columns."""
    expected = _words(text, dict(found.schema))
    assert_frame_equal(found.select(expected.columns), expected, rel_tol=1e-12, abs_tol=1e-12)


def shuffled(frame: pl.DataFrame, seeds: Sequence[int] = (1, 2, 3)) -> list[pl.DataFrame]:
    """Return the rows in three random orders."""
    return [frame.sample(fraction=1, shuffle=True, seed=seed) for seed in seeds]
