"""Encode the lineage page: the graph of steps, and the tables and columns from which each table is computed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from iosig.reports.site.packing import Content, pack_document

#: name of the data file that the page loads
LINEAGE = "lineage"


@dataclass(frozen=True, slots=True)
class TableRow:
    """Lineage of one published or internal table: its step, whether SQL computes it, and its source tables.

    name, sources: as `layer.table`. columns: for SQL tables, each column with its source columns.
    """

    name: str
    step: str
    is_sql: bool
    is_published: bool
    sources: tuple[str, ...]
    columns: tuple[tuple[str, tuple[str, ...]], ...] = ()


def contents(rows: Sequence[TableRow]) -> Content:
    """Encode the lineage graph as one data file. rows: in step order."""
    names = list(dict.fromkeys(row.step for row in rows))
    arrows = _arrows(rows, names)
    levels = _levels(len(names), arrows)
    return pack_document(
        LINEAGE,
        {
            "steps": [{"name": name, "level": level} for name, level in zip(names, levels, strict=True)],
            "order": _order(levels, arrows),
            "arrows": arrows,
            "tables": [_table(row) for row in rows],
        },
    )


def _table(row: TableRow) -> dict[str, Any]:
    return {
        "name": row.name,
        "step": row.step,
        "is_sql": row.is_sql,
        "is_published": row.is_published,
        "sources": row.sources,
        "columns": row.columns,
    }


def _arrows(rows: Sequence[TableRow], names: Sequence[str]) -> list[tuple[int, int]]:
    """Return dependencies as pairs of step indices: the second step reads tables of the first.

    A step that reads tables of a later step uses those of the previous release; such pairs are omitted.
    """
    step_of = {row.name: names.index(row.step) for row in rows}
    pairs = {
        (step_of[source], step_of[row.name]): None
        for row in rows
        for source in row.sources
        if step_of.get(source, len(names)) < step_of[row.name]
    }
    return list(pairs)


def _levels(count: int, arrows: Sequence[tuple[int, int]]) -> list[int]:
    """Return each step's level in the drawing: one more than the maximum level of the steps that it reads from."""
    levels = [0] * count
    for first, then in sorted(arrows, key=lambda arrow: arrow[1]):
        levels[then] = max(levels[then], levels[first] + 1)
    return levels


def _order(levels: Sequence[int], arrows: Sequence[tuple[int, int]]) -> list[list[int]]:
    """Return the steps of each level from left to right, close to the steps that they read from (barycenter method)."""
    place: dict[int, float] = {}
    ordered = []
    for level in range(max(levels, default=-1) + 1):
        steps = [step for step, step_level in enumerate(levels) if step_level == level]
        above = {step: [place[first] for first, then in arrows if then == step] for step in steps}
        steps.sort(key=lambda step: sum(above[step]) / len(above[step]) if above[step] else 0.0)
        place.update({step: (number + 0.5) / len(steps) for number, step in enumerate(steps)})
        ordered.append(steps)
    return ordered
