"""Convert values in the JSON output of any Slurm version: plain or wrapped, a word or a list of words.

A number is plain or `{"set": …, "infinite": …, "number": …}`. A state is a word or a list; in a list, the first word is
the state and all others are flags.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TypeAlias

import polars as pl

from iosig.warehouse.sources.protocol import RAW_LIMIT_CHARS
from iosig.warehouse.sources.rows.documents import MalformedError, items, members, text
from iosig.warehouse.sources.rows.rejects import ParsedRows

#: fields of a record, by iosig's column names
Cells: TypeAlias = dict[str, str | None]
_BLOCK_RECORDS = 20_000


def get_object(value: object, name: str) -> Mapping[str, object]:
    """Return the members of a value that must be an object or null; empty for null."""
    return {} if value is None else members(value, name)


def get_list(value: object, name: str) -> list[object]:
    """Return the items of a value that must be a list or null; empty for null."""
    return [] if value is None else items(value, name)


def get_text(value: object, name: str) -> str | None:
    """Convert a string or number to text; None for null and empty strings."""
    if value is None:
        return None
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return text(str(value) if is_number else value, name) or None


def get_number(value: object, name: str) -> str | None:
    """Convert a plain or wrapped number to text; None if it is not set or infinite."""
    if isinstance(value, dict):
        if not value.get("set", True) or value.get("infinite"):
            return None
        value = value.get("number")
        if isinstance(value, dict):
            raise MalformedError(f"{name} is not a number")
    return get_text(value, name)


def get_instant(value: object, name: str) -> str | None:
    """Convert epoch seconds to text; 0, which Slurm writes for future events, becomes None."""
    seconds = get_number(value, name)
    return None if seconds == "0" else seconds


def get_state(value: object) -> str | None:
    """Return the first word of a state."""
    if isinstance(value, dict):
        value = value.get("current")
    if isinstance(value, list):
        value = value[0] if value else None
    return get_text(value, "state")


def format_job_id(
    job_id: str | None, array: tuple[str | None, str | None, str | None], het: tuple[str | None, str | None]
) -> str | None:
    """Format a job's id as in Slurm's text output: `12`, `12_3`, `12_[4-9]` or `12+1`.

    array: id of the job array, number of the task, and pending tasks. het: id of the heterogeneous job, and component.
    """
    array_id, task, waiting = array
    if array_id not in (None, "0") and (task is not None or waiting is not None):
        return f"{array_id}_{task}" if task is not None else f"{array_id}_[{(waiting or '').strip('[]')}]"
    het_id, component = het
    if het_id not in (None, "0") and component is not None:
        return f"{het_id}+{component}"
    return job_id


def build_malformed_cells(error: Exception, remedy: str) -> Cells:
    """Build the cells of a refused record."""
    return {"reason": f"The record is not in Slurm's format: {error}.", "remedy": remedy}


def settle_in_blocks(
    records: Iterator[tuple[Cells, object]], names: Sequence[str], settle: Callable[[pl.DataFrame], ParsedRows]
) -> Iterator[ParsedRows]:
    """Convert records, given as (cells, raw record), to rows in blocks; names: names of the cells.

    Only refused records are formatted as text, because formatting all records would take longer than reading them.
    """
    schema = pl.Schema({"line": pl.Int64} | dict.fromkeys(names, pl.String))
    numbered = enumerate(records, start=1)
    while block := list(islice(numbered, _BLOCK_RECORDS)):
        rows = [[line, *(cells.get(name) for name in names)] for line, (cells, _) in block]
        settled = settle(pl.DataFrame(rows, schema=schema, orient="row"))
        records_by_line = {line: record for line, (_, record) in block}
        raw = [_raw(records_by_line[line]) for line in settled.refused["line"].to_list()]
        yield ParsedRows(settled.rows, settled.refused.with_columns(raw=pl.Series(raw, dtype=pl.String)))


def _raw(record: object) -> str:
    try:
        return json.dumps(record)[:RAW_LIMIT_CHARS]
    except RecursionError:
        return "(nested too deeply to be shown)"
