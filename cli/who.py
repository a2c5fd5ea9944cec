"""`iosig who`: show which jobs, users and applications moved the bytes."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from iosig.cli.completion import filesystems, quietly
from iosig.cli.options import GlobalOptions, answer_options, draw_into, select_release, window_options

if TYPE_CHECKING:
    import polars as pl

    from iosig.answers.attribution.query import Answer
    from iosig.answers.attribution.slowdowns import SlowdownAnswer
    from iosig.reports.style import Style

#: maximum number of jobs named in a sentence
_MAX_NAMED = 3
#: maximum length of a name, so that each table fits a terminal of 80 columns
_MAX_NAME_CHARS = 19


@click.command("who")
@click.argument("filesystem", shell_complete=quietly(filesystems))
@window_options
@answer_options
@click.pass_obj
def who_command(
    warehouse: GlobalOptions,
    filesystem: str,
    at: datetime | None,
    since: datetime | None,
    until: datetime | None,
    direction: str | None,
    max_count: int,
    release_id: str | None,
    as_json: bool,
    plot: Path | None,
    style: Style,
) -> int:
    """Show the bytes that jobs, users and applications moved on a file system, and the unattributed rest.

    The attribution uses the signatures of the jobs that ran, and per-job server counters: see docs/attribution.md.
    """
    from iosig.answers.attribution import landed, query
    from iosig.cli.printing import show_json

    store = warehouse.store
    parsed_query = query.Query.parse(filesystem, at, since, until, direction)
    release = select_release(store, release_id)
    with landed.open_tables(store, release, warehouse.settings(), parsed_query, query.TABLES) as (
        connection,
        is_landed,
    ):
        answer = query.who(connection, parsed_query, is_landed=is_landed)
    if plot is not None:
        from iosig.answers.attribution.figure import build_view
        from iosig.reports.attribution import draw

        draw_into(plot, draw, build_view(answer), style)
    if as_json:
        show_json(query.build_document(answer, max_count, release.release_id))
    else:
        _show(answer, max_count)
    return 0


def report_window(answer: Answer | SlowdownAnswer, text: str) -> None:
    """Print a sentence about a file system and a time range."""
    from iosig.cli.printing import say

    since, until = (f"{at.astimezone(UTC):%Y-%m-%d %H:%MZ}" for at in (answer.query.since, answer.until))
    landed = ", as far as it has landed" if answer.is_landed else ""
    say(f"{answer.query.filesystem}, {since} to {until}: {text}{landed}")


# ---- who moved the bytes


def _show(answer: Answer, max_count: int) -> None:
    from iosig.cli.printing import bytes_text, format_title, say, show

    directions, measured = answer.query.directions, answer.measured_bytes
    participle = "moved" if len(directions) > 1 else {"read": "read", "write": "written"}[directions[0]]
    report_window(answer, f"{bytes_text(measured)} {participle}")
    tables: tuple[tuple[str, pl.DataFrame, tuple[str, str], str], ...] = (
        ("job", answer.jobs, ("job_id", "application_id"), "application"),
        ("user", answer.users, ("user", "job_count"), "jobs"),
        ("application", answer.applications, ("application", "job_count"), "jobs"),
    )
    for name, frame, columns, second in tables:
        rows = [_cells(row, columns, measured) for row in frame.head(max_count).to_dicts()]
        if rows:
            title = format_title(f"By {name}", len(rows), frame.height)
            show(title, (name, second, "bytes", "share", "range", "confidence", "fit"), rows)
    share = answer.unattributed_bytes / measured if measured else 0.0
    say(f"Unattributed: {bytes_text(answer.unattributed_bytes)}, {share:.0%}.")
    for line in (*_other_lines(answer), *_likeliest_lines(answer)):
        say(line)


def _cells(row: dict[str, Any], columns: tuple[str, str], measured: float) -> tuple[Any, ...]:
    from iosig.reports.texts import shorten, shorten_id, volume_range_texts

    volume = row["attributed_bytes"]
    text, range_text = volume_range_texts(volume, row["attributed_low_bytes"], row["attributed_high_bytes"])
    names = {
        name: (shorten_id if name == "application_id" else shorten)(row[name], _MAX_NAME_CHARS)
        for name in columns
        if isinstance(row[name], str)
    }
    return (
        *(names.get(name, row[name]) for name in columns),
        text,
        f"{volume / measured:.0%}" if measured else "-",
        range_text,
        f"{row['confidence']:.2f}",
        row["fit"],
    )


def _other_lines(answer: Answer) -> list[str]:
    """Return lines on the jobs that ran without known bytes, the most likely contributor first."""
    count = answer.others.height
    first = answer.others.head(_MAX_NAMED).with_columns(attributed_bytes=0.0)
    were = "job was" if count == 1 else "jobs were"
    lines = [f"{count:,} other {were} running without attributed bytes{':' if count else '.'}"]
    lines += _format_jobs(first)
    return [*lines, f"  and {count - _MAX_NAMED:,} more"] if count > _MAX_NAMED else lines


def _likeliest_lines(answer: Answer) -> list[str]:
    """Return lines on the jobs that probably moved the most bytes, if the tables do not show them already."""
    columns = ("job_id", "user", "application")
    first = answer.candidates.head(_MAX_NAMED)
    named = answer.jobs if answer.jobs.height else answer.others
    if first.is_empty() or first.select(columns).equals(named.head(_MAX_NAMED).select(columns)):
        return []
    return ["Most likely top jobs, including unattributed bytes:", *_format_jobs(first)]


def _format_jobs(jobs: pl.DataFrame) -> list[str]:
    """Return a line per job, with its possible bytes."""
    from iosig.cli.printing import bytes_text

    rows = jobs.select("job_id", "user", "application", "attributed_bytes", "likely_bytes").rows()
    return [
        f"  {job_id} ({user}, {application}){f': perhaps {bytes_text(total)}' if total else ''}"
        for job_id, user, application, attributed, likely in rows
        for total in [attributed + (likely or 0.0)]
    ]
