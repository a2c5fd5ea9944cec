"""`iosig lineage`: print from which tables and columns each table is computed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from iosig.cli.options import json_option

if TYPE_CHECKING:
    from iosig.flows.lineage import TableLineage


@click.command("lineage")
@click.argument("table", required=False)
@click.option(
    "--columns",
    "has_columns",
    is_flag=True,
    help="Print the columns of TABLE, and the columns that its SQL computes them from.",
)
@json_option
def lineage_command(table: str | None, has_columns: bool, as_json: bool) -> int:
    """Print the tables and the step from which each table is computed; with TABLE, all of its upstream tables.

    Table lineage comes from the declarations of the steps and from their SQL. Column lineage covers columns that SQL
    computes.
    """
    from iosig.flows.lineage import downstream, get_column_lineage, get_lineage, lineage, upstream

    if table is None:
        if has_columns:
            raise click.UsageError("--columns needs a TABLE.")
        shown, readers, columns = list(lineage()), [], []
    else:
        selected = get_lineage(table)
        before = set(upstream(selected.name))
        shown = [selected, *(item for item in reversed(lineage()) if item.name in before)]
        readers = downstream(selected.name)
        columns = get_column_lineage(selected.table) if has_columns or as_json else []
    if as_json:
        from iosig.cli.documents import LineageDocument
        from iosig.cli.printing import show_json

        show_json(LineageDocument.from_lineage(shown, readers, columns))
        return 0
    _show(shown, readers)
    if has_columns:
        from iosig.cli.printing import show

        rows = [(column.column, ", ".join(column.sources)) for column in columns]
        show("Columns", ("column", "computed from"), rows)
    return 0


def _show(shown: list[TableLineage], readers: list[str]) -> None:
    from iosig.cli.printing import say, show

    rows = [(item.name, item.step, "SQL" if item.is_sql else "Python", ", ".join(item.tables)) for item in shown]
    show("Lineage", ("table", "step", "by", "computed from"), rows)
    if readers:
        say(f"Tables that depend on it: {', '.join(readers)}")
