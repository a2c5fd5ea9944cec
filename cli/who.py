"""`iosig who`."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from iosig.cli.completing import filesystems, quietly
from iosig.cli.options import (
    chosen_release,
    json_option,
    plot_option,
    release_option,
    strict_option,
    style_option,
)
from iosig.cli.unknown import tell_unknown
from iosig.cli.windows import read_instant
from iosig.warehouse.store.store import Store

if TYPE_CHECKING:
    import polars as pl

    from iosig.answers.attribution.query import Answer, Asked
    from iosig.answers.attribution.slowdowns import HurtAnswer
    from iosig.reports.style import Style
    from iosig.warehouse.releases.releases import Release


@click.command("who")
@click.argument("filesystem", shell_complete=quietly(filesystems))
@click.option("--at", metavar="TIME", callback=read_instant, help="The minute that this instant is in.")
@click.option("--since", metavar="TIME", callback=read_instant, help="From this instant on, in whole minutes.")
@click.option("--until", metavar="TIME", callback=read_instant, help="Until then; to the last poll if not given.")
@click.option("--direction", type=click.Choice(["write", "read"]), help="Else both together.")
@click.option("--top", "most_count", default=10, show_default=True, type=click.IntRange(min=1), help="So many of each.")
@click.option(
    "--unknown", "is_unknown", is_flag=True, help="What comes again and again in what nobody explains, instead."
)
@click.option("--hurt", "is_hurt", is_flag=True, help="Say who was hurt instead: whose bursts took longer than alone.")
@release_option
@json_option
@plot_option
@style_option
@strict_option
@click.pass_obj
def who_command(
    obj: tuple[Store, Path | None],
    filesystem: str,
    at: datetime | None,
    since: datetime | None,
    until: datetime | None,
    direction: str | None,
    most_count: int,
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
    from iosig.answers.attribution.query import Asked, document

    if is_unknown:
        if at is not None or plot is not None:
            raise click.UsageError("--unknown takes --since and --until, and draws nothing.")
        release, window = chosen_release(obj[0], release_id), (since, until)
        return tell_unknown(obj[0], release, filesystem, direction, window, most_count, as_json=as_json)
    asked = Asked.of(filesystem, at, since, until, direction)
    release = chosen_release(obj[0], release_id)
    if is_hurt:
        return _say_who_was_hurt(obj, release, asked, most_count, as_json, plot)
    told = _who(obj, release, asked)
    if plot is not None:
        _draw(told, plot, style)
    if as_json:
        from iosig.cli.printing import show_json

        show_json(document(told, most_count, release.release_id))
    else:
        _show(told, most_count)
    return 0


def _who(obj: tuple[Store, Path | None], release: Release, asked: Asked) -> Answer:
    """Query a release, or what has landed since."""
    from iosig.answers.attribution.landed import open_tables
    from iosig.answers.attribution.query import TABLES, who
    from iosig.settings.model import load

    with open_tables(obj[0], release, load(obj[1], obj[0].root), asked, TABLES) as (connection, is_landed):
        return who(connection, asked, is_landed=is_landed)


def _say_who_was_hurt(
    obj: tuple[Store, Path | None], release: Release, asked: Asked, most_count: int, as_json: bool, plot: Path | None
) -> int:
    from iosig.answers.attribution.slowdowns import hurt_document
    from iosig.warehouse.errors import UsageError

    if plot is not None:
        raise UsageError("There is no picture of who was hurt: leave --plot or --hurt away.")
    told = _hurt(obj, release, asked)
    if as_json:
        from iosig.cli.printing import show_json

        show_json(hurt_document(told, most_count, release.release_id))
    else:
        _show_hurt(told, most_count)
    return 0


def _hurt(obj: tuple[Store, Path | None], release: Release, asked: Asked) -> HurtAnswer:
    """Query a release, or what has landed since."""
    from iosig.answers.attribution.landed import open_tables
    from iosig.answers.attribution.slowdowns import TABLES, hurt
    from iosig.settings.model import load

    with open_tables(obj[0], release, load(obj[1], obj[0].root), asked, TABLES) as (connection, is_landed):
        return hurt(connection, asked, is_landed=is_landed)


def _draw(told: Answer, target: Path, style: Style) -> None:
    from iosig.answers.attribution.figure import view_of
    from iosig.reports.attribution import draw

    draw(view_of(told)).write(target, style)
    click.echo(f"Drawn: {target}", err=True)


def _show(told: Answer, most_count: int) -> None:
    from iosig.cli.printing import bytes_text, printable, say, show

    asked = told.asked
    moved = "moved" if len(asked.directions) > 1 else {"read": "read", "write": "written"}[asked.directions[0]]
    when = f"{_time_text(asked.since)} to {_time_text(told.until)}"
    landed = ", as far as it has landed" if told.is_landed else ""
    say(printable(f"{asked.filesystem}, {when}: {bytes_text(told.measured_bytes)} {moved}{landed}"))
    for name, frame in (("job", told.jobs), ("user", told.users), ("application", told.applications)):
        names = ("job_id", "application_id") if name == "job" else (name, "job_count")
        rows = [_cells(row, names, told.measured_bytes) for row in frame.head(most_count).to_dicts()]
        second = "application" if name == "job" else "jobs"
        if rows:
            show(_rest(frame, most_count, name), (name, second, *_COLUMNS), rows)
    share = told.unexplained_bytes / told.measured_bytes if told.measured_bytes else 0.0
    say(f"Nobody: {bytes_text(told.unexplained_bytes)}, {share:.0%}.\n{_others(told)}{_likeliest(told)}")


_COLUMNS = ("bytes", "share", "range", "sure", "fit")
#: so many of those who were there are named
_MOST_OTHERS = 3
#: of a name, so that a table fits a terminal of 80
_MOST_CHARACTERS = 19
_MOST_ID_CHARACTERS, _MOST_HURT_CHARACTERS = 10, 13


def _cells(row: dict[str, Any], names: tuple[str, ...], measured: float) -> tuple[Any, ...]:
    from iosig.reports.texts import VOLUMES, shortened, unit_for

    volume = row["explained_bytes"]
    unit = unit_for(volume, VOLUMES, "B")
    # three digits each, and no exponent
    low, high = (f"{float(f'{row[name] / unit.size:.3g}'):g}" for name in ("low_bytes", "high_bytes"))
    return (
        *(shortened(row[name], _MOST_CHARACTERS) if isinstance(row[name], str) else row[name] for name in names),
        f"{volume / unit.size:.3g} {unit.name}",
        f"{volume / measured:.0%}" if measured else "-",
        f"{low}-{high}",
        f"{row['certainty']:.2f}",
        row["fit"],
    )


def _show_hurt(told: HurtAnswer, most_count: int) -> None:
    from iosig.cli.printing import printable, say, show

    asked = told.asked
    when = f"{_time_text(asked.since)} to {_time_text(told.until)}"
    landed = ", as far as it has landed" if told.is_landed else ""
    runs = "run was" if told.runs.height == 1 else "runs were"
    said = f"{told.runs.height:,} {runs} hurt, of {told.run_count:,} whose bursts were found{landed}"
    say(printable(f"{asked.filesystem}, {when}: {said}"))
    rows = [_hurt_cells(row) for row in told.runs.head(most_count).to_dicts()]
    if rows:
        more = told.runs.height - most_count
        title = f"Hurt, the first {most_count} of {told.runs.height:,}" if more > 0 else "Hurt"
        show(title, _HURT_COLUMNS, rows, last=_HURT_LAST)


#: what a narrow terminal lacks first
_HURT_LAST = ("bytes", "bursts", "trust")
_HURT_COLUMNS = ("job", "application", "longer", "range", "trust", "bursts", "most there", "bytes")


def _hurt_cells(row: dict[str, Any]) -> tuple[Any, ...]:
    """Return a run's cells: how much longer its hurt bursts took, and who had most bytes where they were done."""
    from iosig.cli.printing import bytes_text
    from iosig.reports.slowdowns import most_there
    from iosig.reports.texts import shortened

    name, volume = most_there(row)
    return (
        shortened(row["job_id"], _MOST_ID_CHARACTERS),
        shortened(row["application_id"], _MOST_HURT_CHARACTERS),
        f"{row['longer_s']:,.0f} s",
        f"{row['low_longer_s']:.0f}-{row['high_longer_s']:.0f}",
        "" if row["trust"] is None else f"{row['trust']:.2f}",
        f"{row['hurt_burst_count']}/{row['burst_count']}",
        shortened(name, _MOST_HURT_CHARACTERS),
        bytes_text(volume),
    )


def _rest(frame: pl.DataFrame, most_count: int, name: str) -> str:
    more = frame.height - most_count
    return f"By {name}" + (f", the first {most_count} of {frame.height:,}" if more > 0 else "")


def _others(told: Answer) -> str:
    from iosig.cli.printing import bytes_text, printable

    count = told.others.height
    first = told.others.head(_MOST_OTHERS).select("job_id", "user", "application", "likely_bytes").rows()
    names = [
        f"\n  {job_id} ({user}, {application}){f': perhaps {bytes_text(likely)}' if likely else ''}"
        for job_id, user, application, likely in first
    ]
    said = f"{count:,} other {'job was' if count == 1 else 'jobs were'} there; no byte is known to be theirs"
    more = f"\n  and {count - len(names):,} more" if count > len(names) else ""
    return "\n".join(map(printable, f"{said}{':' if names else '.'}{''.join(names)}{more}".split("\n")))


def _likeliest(told: Answer) -> str:
    """Return who is likeliest to have moved most, where the tables do not say so already."""
    from iosig.cli.printing import bytes_text, printable

    columns = ("job_id", "user", "application")
    first = told.likeliest.head(_MOST_OTHERS)
    named = told.jobs if told.jobs.height else told.others
    if first.is_empty() or first.select(columns).equals(named.head(_MOST_OTHERS).select(columns)):
        return ""
    rows = first.select(*columns, "explained_bytes", "likely_bytes").rows()
    names = [
        f"  {job_id} ({user}, {application}): perhaps {bytes_text(known + (likely or 0.0))}"
        for job_id, user, application, known, likely in rows
    ]
    return "\n".join(map(printable, ["\nLikeliest to have moved most, with what nobody explains:", *names]))


def _time_text(instant: datetime) -> str:
    return f"{instant.astimezone(UTC):%Y-%m-%d %H:%MZ}"
