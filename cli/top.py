"""`iosig top`: rank users, accounts, applications or codes by the bytes that their runs moved."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from iosig.cli.completion import filesystems, quietly
from iosig.cli.options import GlobalOptions, json_option, release_option, select_release, strict_option
from iosig.cli.windows import read_instant

if TYPE_CHECKING:
    from iosig.answers.top import By, Ranking

#: maximum length of a name, so that the table fits a terminal of 80 columns
_MAX_NAME_CHARS = 24


@click.command("top")
@click.option(
    "--by",
    type=click.Choice(["user", "account", "application", "code"]),
    default="application",
    show_default=True,
    help="What to rank. application: one user, program and node count; code: a program over all of them.",
)
@click.option("--since", metavar="TIME", callback=read_instant, help="Runs that ended at this instant or later.")
@click.option("--until", metavar="TIME", callback=read_instant, help="Runs that ended before this instant.")
@click.option("--filesystem", shell_complete=quietly(filesystems), help="Only this file system; default: all.")
@click.option("--direction", type=click.Choice(["write", "read"]), help="Only this direction; default: both.")
@click.option("--top", "max_count", default=10, show_default=True, type=click.IntRange(min=1), help="Number of rows.")
@release_option
@json_option
@strict_option
@click.pass_obj
def top_command(
    warehouse: GlobalOptions,
    by: By,
    since: datetime | None,
    until: datetime | None,
    filesystem: str | None,
    direction: str | None,
    max_count: int,
    release_id: str | None,
    as_json: bool,
) -> int:
    """Rank users, accounts, applications or codes by the bytes that their runs moved.

    A run counts with all its bytes at its end. Bytes are the best estimate of `job_io`: counted by servers, traced, or
    attributed by the signature of the application. The range is the sum of the runs' 80 % ranges.
    """
    from iosig.answers import top
    from iosig.cli.printing import show_json
    from iosig.warehouse.releases.reading import open_release

    query = top.Query(by, since, until, filesystem, direction)
    release = select_release(warehouse.store, release_id)
    with open_release(warehouse.store, release, top.TABLES) as connection:
        ranking = top.rank_runs(connection, query)
    if as_json:
        show_json(top.build_document(ranking, max_count, release.release_id))
    else:
        _show(ranking, max_count)
    return 0


def _show(ranking: Ranking, max_count: int) -> None:
    from iosig.cli.printing import bytes_text, format_title, say, show
    from iosig.reports.texts import format_count

    rows = ranking.members.head(max_count).to_dicts()
    by = ranking.query.by
    title = format_title(f"Bytes by {by}", len(rows), ranking.members.height)
    columns = (by, "runs", "read", "written", "bytes", "share", "range", "own")
    show(title, columns, [_cells(row) for row in rows], last=["own"])
    without_count = ranking.run_count - ranking.estimated_run_count
    say(
        f"{format_count(ranking.run_count, 'run')}: estimated {bytes_text(ranking.estimated_bytes)}; "
        f"{without_count:,} without an estimate. Polls measured {bytes_text(ranking.measured_bytes)} in this time."
    )


def _cells(row: dict[str, Any]) -> tuple[Any, ...]:
    from iosig.cli.printing import bytes_text
    from iosig.reports.texts import shorten_id, volume_range_texts

    name = shorten_id(row["name"], _MAX_NAME_CHARS) if row["name"] else row["name"]
    volume = row["estimated_bytes"]
    if volume is None:
        return name, row["run_count"], None, None, None, None, None, None
    text, range_text = volume_range_texts(volume, row["estimated_low_bytes"], row["estimated_high_bytes"])
    own_ratio = (row["own_bytes"] or 0.0) / volume if volume else None
    return (
        name,
        row["run_count"],
        bytes_text(row["read_bytes"]),
        bytes_text(row["written_bytes"]),
        text,
        None if row["share"] is None else f"{row['share']:.0%}",
        range_text,
        None if own_ratio is None else f"{own_ratio:.0%}",
    )
