"""`iosig slowdowns`: list runs with bursts that took longer than alone, and the interfering jobs."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from iosig.cli.completion import filesystems, quietly
from iosig.cli.options import GlobalOptions, json_option, release_option, select_release, strict_option, window_options
from iosig.cli.who import report_window

if TYPE_CHECKING:
    from iosig.answers.attribution.slowdowns import SlowdownAnswer

#: maximum length of a name, so that the table fits a terminal of 80 columns
#: maximum length of a job id
_MAX_NAME_CHARS, _MAX_JOB_CHARS = 13, 10


@click.command("slowdowns")
@click.argument("filesystem", shell_complete=quietly(filesystems))
@window_options
@release_option
@json_option
@strict_option
@click.pass_obj
def slowdowns_command(
    warehouse: GlobalOptions,
    filesystem: str,
    at: datetime | None,
    since: datetime | None,
    until: datetime | None,
    direction: str | None,
    max_count: int,
    release_id: str | None,
    as_json: bool,
) -> int:
    """List the runs that were slowed down on a file system, their delays, and the interfering jobs.

    A run counts as slowed if one of its bursts took longer than alone by more than the uncertainty range: see
    docs/attribution.md.
    """
    from iosig.answers.attribution import landed, query, slowdowns
    from iosig.cli.printing import show_json

    store = warehouse.store
    parsed_query = query.Query.parse(filesystem, at, since, until, direction)
    release = select_release(store, release_id)
    with landed.open_tables(store, release, warehouse.settings(), parsed_query, slowdowns.TABLES) as (
        connection,
        is_landed,
    ):
        answer = slowdowns.find_slowdowns(connection, parsed_query, is_landed=is_landed)
    if as_json:
        show_json(slowdowns.build_slowdown_document(answer, max_count, release.release_id))
    else:
        _show(answer, max_count)
    return 0


def _show(answer: SlowdownAnswer, max_count: int) -> None:
    from iosig.cli.printing import format_title, show
    from iosig.reports.texts import format_count

    were = "was" if answer.runs.height == 1 else "were"
    runs = format_count(answer.runs.height, "run")
    report_window(answer, f"{runs} {were} slowed, of {answer.run_count:,} with detected bursts")
    rows = [_cells(row) for row in answer.runs.head(max_count).to_dicts()]
    if rows:
        columns = ("job", "application", "delay", "range", "corr", "bursts", "interferer", "bytes")
        show(format_title("Slowed", len(rows), answer.runs.height), columns, rows, last=("bytes", "bursts", "corr"))


def _cells(row: dict[str, Any]) -> tuple[Any, ...]:
    """Return a run's table cells, with the delay of its slowed bursts and the job with the most interfering bytes."""
    from iosig.cli.printing import bytes_text
    from iosig.reports.slowdowns import top_interferer
    from iosig.reports.texts import shorten, shorten_id

    name, volume = top_interferer(row)
    return (
        shorten(row["job_id"], _MAX_JOB_CHARS),
        shorten_id(row["application_id"], _MAX_NAME_CHARS),
        f"{row['delay_s']:,.0f} s",
        f"{row['delay_low_s']:.0f}-{row['delay_high_s']:.0f}",
        "" if row["expected_correlation"] is None else f"{row['expected_correlation']:.2f}",
        f"{row['slowed_burst_count']}/{row['burst_count']}",
        shorten_id(name, _MAX_NAME_CHARS),
        bytes_text(volume),
    )
