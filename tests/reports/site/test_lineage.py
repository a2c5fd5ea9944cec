"""The lineage page as data: levels and order of steps."""

from __future__ import annotations

from typing import Any

from iosig.flows.lineage import get_column_lineage, lineage, table_rows
from iosig.reports.site.lineage import TableRow, contents
from iosig.reports.site.packing import unpack_document


def row(name: str, step: str, *sources: str) -> TableRow:
    return TableRow(
        f"stage.{name}", step, is_sql=False, is_published=True, sources=tuple(f"stage.{of}" for of in sources)
    )


def document(*rows: TableRow) -> Any:
    return unpack_document(contents(rows).data)


def test_step_is_below_all_steps_from_which_it_reads() -> None:
    told = document(
        row("a", "first"),
        row("b", "second", "a", "landed_only"),
        row("c", "third", "b", "a"),
        row("d", "beside", "a"),
        # Reads from the previous release: the arrow would point upward and is omitted.
        row("e", "second", "c"),
    )
    names = [step["name"] for step in told["steps"]]
    assert names == ["first", "second", "third", "beside"]
    assert [step["level"] for step in told["steps"]] == [0, 1, 2, 1]
    assert sorted(map(tuple, told["arrows"])) == [(0, 1), (0, 2), (0, 3), (1, 2)]
    assert told["order"] == [[0], [1, 3], [2]]


def test_steps_of_a_level_are_below_their_sources() -> None:
    told = document(row("a", "left"), row("b", "right"), row("c", "of right", "b"), row("d", "of left", "a"))
    assert told["order"] == [[0, 1], [3, 2]]
    assert document()["order"] == []


def test_all_steps_of_a_run_are_present() -> None:
    told = unpack_document(contents(table_rows()).data)
    assert [table["name"] for table in told["tables"]] == [found.name for found in lineage()]
    shown = {table["name"]: table for table in told["tables"]}
    job_io = next(found for found in lineage() if found.name == "transforms.job_io")
    assert shown["transforms.job_io"]["sources"] == list(job_io.tables)
    assert shown["transforms.job_io"]["columns"] == [
        [own.column, list(own.sources)] for own in get_column_lineage(job_io.table)
    ]
    levels = {step["name"]: step["level"] for step in told["steps"]}
    assert levels["stage jobs"] < levels["samples"] < levels["signatures"] < levels["attribution"] < levels["job i/o"]
