"""`iosig who`: who moved the bytes, who was hurt, and what comes again unexplained."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from iosig.cli.completing import filesystems, quietly
from iosig.cli.options import Warehouse, answer_options, chosen_release, draw_into
from iosig.cli.windows import read_instant
from iosig.warehouse.errors import UsageError

if TYPE_CHECKING:
    import polars as pl

    from iosig.answers.attribution.patterns import Unknown
    from iosig.answers.attribution.query import Answer
    from iosig.answers.attribution.slowdowns import HurtAnswer
    from iosig.reports.style import Style

#: jobs that are named in sentences
_MAX_NAMED = 3
#: characters of a name, so that each table fits a terminal of 80
_NAME_CHARACTERS, _PATTERN_CHARACTERS, _HURT_CHARACTERS, _JOB_CHARACTERS = 19, 16, 13, 10


@click.command("who")
@click.argument("filesystem", shell_complete=quietly(filesystems))
@click.option("--at", metavar="TIME", callback=read_instant, help="The minute that this instant is in.")
@click.option("--since", metavar="TIME", callback=read_instant, help="From this instant on, in whole minutes.")
@click.option("--until", metavar="TIME", callback=read_instant, help="Until then; to the last poll if not given.")
@click.option("--direction", type=click.Choice(["write", "read"]), help="Else both together.")
@click.option("--top", "max_count", default=10, show_default=True, type=click.IntRange(min=1), help="So many of each.")
@click.option(
    "--unknown", "is_unknown", is_flag=True, help="What comes again and again in what nobody explains, instead."
)
@click.option("--hurt", "is_hurt", is_flag=True, help="Say who was hurt instead: whose bursts took longer than alone.")
@answer_options
@click.pass_obj
def who_command(
    warehouse: Warehouse,
    filesystem: str,
    at: datetime | None,
    since: datetime | None,
    until: datetime | None,
    direction: str | None,
    max_count: int,
    is_unknown: bool,
    is_hurt: bool,
    release_id: str | None,
    as_json: bool,
    plot: Path | None,
    style: Style,
) -> int:
    """Say which jobs, users and applications moved how much of a file system's traffic, and what nobody explains.

    By the signatures of the jobs that were there, and by what servers counted for them: see docs/attribution.md.
    """
    from iosig.answers.attribution import landed, patterns, query, slowdowns
    from iosig.cli.printing import show_json

    store = warehouse.store
    if is_unknown:
        if at is not None or plot is not None:
            raise click.UsageError("--unknown takes --since and --until, and draws nothing.")
        release = chosen_release(store, release_id)
        found = patterns.unknown(store, release, filesystem, direction, (since, until))
        if as_json:
            show_json(patterns.document(found, max_count, release.release_id))
        else:
            _show_patterns(found, max_count)
        return 0
    asked = query.Asked.of(filesystem, at, since, until, direction)
    release = chosen_release(store, release_id)
    if is_hurt and plot is not None:
        raise UsageError("There is no picture of who was hurt: leave --plot or --hurt away.")
    tables = slowdowns.TABLES if is_hurt else query.TABLES
    with landed.open_tables(store, release, warehouse.settings(), asked, tables) as (connection, is_landed):
        if is_hurt:
            hurt = slowdowns.hurt(connection, asked, is_landed=is_landed)
        else:
            answer = query.who(connection, asked, is_landed=is_landed)
    if is_hurt and as_json:
        show_json(slowdowns.hurt_document(hurt, max_count, release.release_id))
    elif is_hurt:
        _show_hurt(hurt, max_count)
    else:
        if plot is not None:
            from iosig.answers.attribution.figure import view_of
            from iosig.reports.attribution import draw

            draw_into(plot, draw, view_of(answer), style)
        if as_json:
            show_json(query.document(answer, max_count, release.release_id))
        else:
            _show(answer, max_count)
    return 0


def _say_about(told: Answer | HurtAnswer, text: str) -> None:
    """Print a sentence about a file system and a time."""
    from iosig.cli.printing import say

    since, until = (f"{at.astimezone(UTC):%Y-%m-%d %H:%MZ}" for at in (told.asked.since, told.until))
    landed = ", as far as it has landed" if told.is_landed else ""
    say(f"{told.asked.filesystem}, {since} to {until}: {text}{landed}")


# ---- who moved the bytes


def _show(answer: Answer, max_count: int) -> None:
    from iosig.cli.printing import bytes_text, say, show, titled

    directions, measured = answer.asked.directions, answer.measured_bytes
    moved = "moved" if len(directions) > 1 else {"read": "read", "write": "written"}[directions[0]]
    _say_about(answer, f"{bytes_text(measured)} {moved}")
    tables: tuple[tuple[str, pl.DataFrame, tuple[str, str], str], ...] = (
        ("job", answer.jobs, ("job_id", "application_id"), "application"),
        ("user", answer.users, ("user", "job_count"), "jobs"),
        ("application", answer.applications, ("application", "job_count"), "jobs"),
    )
    for name, frame, columns, second in tables:
        rows = [_cells(row, columns, measured) for row in frame.head(max_count).to_dicts()]
        if rows:
            title = titled(f"By {name}", len(rows), frame.height)
            show(title, (name, second, "bytes", "share", "range", "sure", "fit"), rows)
    share = answer.unexplained_bytes / measured if measured else 0.0
    say(f"Nobody: {bytes_text(answer.unexplained_bytes)}, {share:.0%}.")
    for line in (*_other_lines(answer), *_likeliest_lines(answer)):
        say(line)


def _cells(row: dict[str, Any], columns: tuple[str, str], measured: float) -> tuple[Any, ...]:
    from iosig.reports.texts import VOLUMES, shortened, unit_for

    volume = row["explained_bytes"]
    unit = unit_for(volume, VOLUMES, "B")
    # three digits each, and no exponent
    low, high = (f"{float(f'{row[name] / unit.size:.3g}'):g}" for name in ("low_bytes", "high_bytes"))
    return (
        *(shortened(row[name], _NAME_CHARACTERS) if isinstance(row[name], str) else row[name] for name in columns),
        f"{volume / unit.size:.3g} {unit.name}",
        f"{volume / measured:.0%}" if measured else "-",
        f"{low}-{high}",
        f"{row['certainty']:.2f}",
        row["fit"],
    )


def _other_lines(answer: Answer) -> list[str]:
    """Return which jobs were there without a known byte, the likeliest first."""
    count = answer.others.height
    first = answer.others.head(_MAX_NAMED).with_columns(explained_bytes=0.0)
    were = "job was" if count == 1 else "jobs were"
    lines = [f"{count:,} other {were} there; no byte is known to be theirs{':' if count else '.'}"]
    lines += _named(first)
    return [*lines, f"  and {count - _MAX_NAMED:,} more"] if count > _MAX_NAMED else lines


def _likeliest_lines(answer: Answer) -> list[str]:
    """Return which jobs are likeliest to have moved most, where the tables do not say so already."""
    columns = ("job_id", "user", "application")
    first = answer.likeliest.head(_MAX_NAMED)
    named = answer.jobs if answer.jobs.height else answer.others
    if first.is_empty() or first.select(columns).equals(named.head(_MAX_NAMED).select(columns)):
        return []
    return ["Likeliest to have moved most, with what nobody explains:", *_named(first)]


def _named(jobs: pl.DataFrame) -> list[str]:
    """Return a line for each job, with what it may have moved."""
    from iosig.cli.printing import bytes_text

    rows = jobs.select("job_id", "user", "application", "explained_bytes", "likely_bytes").rows()
    return [
        f"  {job_id} ({user}, {application}){f': perhaps {bytes_text(moved)}' if moved else ''}"
        for job_id, user, application, known, likely in rows
        for moved in [known + (likely or 0.0)]
    ]


# ---- who was hurt


def _show_hurt(hurt: HurtAnswer, max_count: int) -> None:
    from iosig.cli.printing import show, titled
    from iosig.reports.texts import counted

    were = "was" if hurt.runs.height == 1 else "were"
    _say_about(hurt, f"{counted(hurt.runs.height, 'run')} {were} hurt, of {hurt.run_count:,} whose bursts were found")
    rows = [_hurt_cells(row) for row in hurt.runs.head(max_count).to_dicts()]
    if rows:
        columns = ("job", "application", "longer", "range", "trust", "bursts", "most there", "bytes")
        show(titled("Hurt", len(rows), hurt.runs.height), columns, rows, last=("bytes", "bursts", "trust"))


def _hurt_cells(row: dict[str, Any]) -> tuple[Any, ...]:
    """Return a run's cells: how much longer its hurt bursts took, and who had most bytes where they were done."""
    from iosig.cli.printing import bytes_text
    from iosig.reports.slowdowns import most_there
    from iosig.reports.texts import shortened

    name, volume = most_there(row)
    return (
        shortened(row["job_id"], _JOB_CHARACTERS),
        shortened(row["application_id"], _HURT_CHARACTERS),
        f"{row['longer_s']:,.0f} s",
        f"{row['low_longer_s']:.0f}-{row['high_longer_s']:.0f}",
        "" if row["trust"] is None else f"{row['trust']:.2f}",
        f"{row['hurt_burst_count']}/{row['burst_count']}",
        shortened(name, _HURT_CHARACTERS),
        bytes_text(volume),
    )


# ---- what comes again unexplained


def _show_patterns(found: Unknown, max_count: int) -> None:
    from iosig.cli.printing import say, show, titled

    rows = found.patterns.head(max_count).to_dicts()
    if rows:
        title = titled(f"{found.filesystem}: what nobody explains and comes again", len(rows), found.patterns.height)
        columns = ("pattern", "way", "times", "every", "bytes", "last seen", "whose")
        show(title, columns, [_pattern_cells(row) for row in rows])
    for row in rows:
        if row["application_id"]:
            say(
                f"{row['pattern_id'][:8]}: {row['covered_appearance_count']} of {row['appearance_count']} in runs of "
                f"{row['application_id']}, seen in {row['covering_run_count']} of {row['application_run_count']} runs; "
                f"by chance {row['chance_probability']:.1g}."
            )
    why = {"nothing_recurs": "nothing comes again", "too_short": "too little was polled to tell"}
    for direction, outcome in found.nothing.items():
        say(f"{direction}: {why[outcome]}.")
    if not rows and not found.nothing:
        say("Nothing that comes again appeared then.")


def _pattern_cells(row: dict[str, Any]) -> tuple[Any, ...]:
    from iosig.reports.texts import duration_text, shortened, volume_text

    whose = {"unnamed": "nobody's", "unsure": "unsure"}.get(row["outcome"], row["application_id"] or "")
    return (
        row["pattern_id"][:8],
        row["direction"],
        row["appearance_count"],
        duration_text(row["period_s"]) if row["period_s"] else None,
        volume_text(row["appearance_bytes"]),
        f"{row['last_appeared_at'].astimezone(UTC):%m-%d %H:%M}",
        shortened(whose, _PATTERN_CHARACTERS),
    )
