"""`iosig plot`: draw the figures of a release."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from iosig.cli.completion import filesystems, quietly, releases
from iosig.cli.options import (
    DAY,
    GlobalOptions,
    application_argument,
    is_given,
    metric_option,
    picture_path,
    release_option,
    select_release,
    strict_option,
    style_option,
)
from iosig.cli.windows import read_instant

if TYPE_CHECKING:
    from iosig.reports.panels import Picture
    from iosig.reports.style import Style
    from iosig.warehouse.contracts.metrics import Metric
    from iosig.warehouse.releases.releases import Release
    from iosig.warehouse.store.store import Store


@click.group("plot")
def plot_command() -> None:
    """Draw parts of a release as a PNG or an SVG: an application's signature, or an overview figure."""


def _figure(name: str, *options: Callable[[Any], Any]) -> Callable[[Any], click.Command]:
    """Turn a function into the subcommand of a figure, with the common options for release, file and style."""
    target = click.option(
        "--output",
        "target",
        type=click.Path(path_type=Path, dir_okay=False),
        default=Path(f"{name}.png"),
        show_default=True,
        callback=picture_path,
        help="The file to write: .png or .svg.",
    )

    def decorate(function: Any) -> click.Command:
        for option in (click.pass_obj, strict_option, style_option, target, release_option, *reversed(options)):
            function = option(function)
        return plot_command.command(name)(function)

    return decorate


def _draw(draw: Callable[[Any], Picture], view: Any, target: Path, style: Style, *lines: str) -> int:
    """Draw a view, and print the picture's path and a description."""
    from iosig.cli.printing import say

    draw(view).write(target, style)
    first, *notes = lines or (view.finding,)
    say(f"{target}: {first}")
    for line in notes:
        say(line)
    return 0


_direction_option = click.option("--direction", type=click.Choice(["write", "read"]), help="Only this direction.")
_busiest_direction_option = click.option(
    "--direction", type=click.Choice(["write", "read"]), help="Direction. Default: the one with most bytes."
)
_filesystem_option = click.option(
    "--filesystem",
    shell_complete=quietly(filesystems),
    help="File system, if the application has used several.",
)


@_figure(
    "signature",
    application_argument,
    _filesystem_option,
    _busiest_direction_option,
    click.option("--method", help="Method of the signature. Default: the application's default method."),
    metric_option,
    click.option("--with", "overlaid", metavar="METHOD", multiple=True, help="Overlay the signature of this method."),
)
def signature_command(
    warehouse: GlobalOptions,
    application: str,
    filesystem: str | None,
    direction: str | None,
    method: str | None,
    metric: Metric,
    overlaid: tuple[str, ...],
    release_id: str | None,
    target: Path,
    style: Style,
) -> int:
    """Draw an application's signature: its samples above; the signature, its band and its bursts below.

    APPLICATION is an id as `iosig sql "from applications"` lists them (user@machine/application/node_count), or an
    unambiguous part of one.
    """
    from iosig.answers.signatures.view import Query, build_view
    from iosig.reports.signatures import draw
    from iosig.warehouse.releases.releases import find

    query = Query(application, filesystem, direction, method, overlaid, metric)
    view = build_view(warehouse.store, find(warehouse.store, release_id), query)
    subject = f"{view.direction} of {view.application_id} on {view.filesystem} ({view.main.method})"
    return _draw(draw, view, target, style, subject, view.verdict)


@_figure(
    "iosi",
    application_argument,
    _filesystem_option,
    _busiest_direction_option,
    click.option(
        "--method",
        type=click.Choice(["iosi", "iosi_filtered", "iosi_raw"]),
        default="iosi",
        show_default=True,
        help="IOSI as published, with filters, or without preprocessing.",
    ),
    click.option("--job", "job_id", help="Job whose sample is shown. Default: the used run with the median volume."),
    click.option(
        "--json",
        "as_json",
        is_flag=True,
        help="Print the numbers as JSON, as described in docs/json.md. Draws only if --output is given.",
    ),
)
def iosi_command(
    warehouse: GlobalOptions,
    application: str,
    filesystem: str | None,
    direction: str | None,
    method: str,
    job_id: str | None,
    as_json: bool,
    release_id: str | None,
    target: Path,
    style: Style,
) -> int:
    """Draw the intermediate results of IOSI: outliers, noise reduction, wavelets, and the grid of common bursts.

    The panels follow Figures 7 to 11 of the paper (FAST'14). APPLICATION is an id as `iosig sql "from applications"`
    lists them (user@machine/application/node_count), or an unambiguous part of one.
    """
    from iosig.answers.signatures.stages import build_document, trace_application
    from iosig.answers.signatures.view import Query
    from iosig.cli.printing import show_json
    from iosig.reports.iosi import draw

    query = Query(application, filesystem, direction, method)
    answer = trace_application(warehouse.store, select_release(warehouse.store, release_id), query, job_id)
    if not as_json:
        return _draw(draw, answer.view, target, style)
    if is_given("target"):
        draw(answer.view).write(target, style)
    show_json(build_document(answer))
    return 0


# ---- overview figures


@_figure(
    "who",
    click.argument("filesystem", shell_complete=quietly(filesystems)),
    click.option(
        "--since", metavar="TIME", callback=read_instant, help="Start of the time range. Default: the last day."
    ),
    click.option(
        "--until", metavar="TIME", callback=read_instant, help="End of the time range. Default: the last poll."
    ),
    _direction_option,
)
def who_command(
    warehouse: GlobalOptions,
    filesystem: str,
    since: datetime | None,
    until: datetime | None,
    direction: str | None,
    release_id: str | None,
    target: Path,
    style: Style,
) -> int:
    """Draw a file system's traffic: measured rates, the contributing applications, and the unattributed part."""
    from iosig.answers.attribution.figure import build_view
    from iosig.answers.attribution.query import TABLES, Query, find_last_day_start, who
    from iosig.reports.attribution import draw
    from iosig.warehouse.releases.reading import open_release

    release = select_release(warehouse.store, release_id)
    start = since or find_last_day_start(warehouse.store, release, filesystem, until)
    with open_release(warehouse.store, release, TABLES) as connection:
        view = build_view(who(connection, Query.parse(filesystem, None, start, until, direction)))
    return _draw(draw, view, target, style)


@_figure(
    "calendar",
    click.argument("filesystem", required=False, shell_complete=quietly(filesystems)),
    click.option("--since", type=DAY, metavar="DAY", help="First UTC day. Default: the last month of polls."),
    click.option("--until", type=DAY, metavar="DAY", help="Last UTC day. Default: the last poll."),
    _direction_option,
)
def calendar_command(
    warehouse: GlobalOptions,
    filesystem: str | None,
    since: datetime | None,
    until: datetime | None,
    direction: str | None,
    release_id: str | None,
    target: Path,
    style: Style,
) -> int:
    """Draw the storage calendar: bytes moved on a file system, with a row per day and a column per minute.

    FILESYSTEM: by default the one with most bytes.
    """
    from iosig.answers.wall.storage_calendar import TABLES, build_view
    from iosig.reports.wall.storage_calendar import draw
    from iosig.warehouse.releases.reading import open_release

    first, last = (None if at is None else at.date() for at in (since, until))
    with open_release(warehouse.store, select_release(warehouse.store, release_id), TABLES) as connection:
        view = build_view(connection, filesystem, first, last, [direction] if direction else ("write", "read"))
    return _draw(draw, view, target, style)


@_figure("map")
def map_command(warehouse: GlobalOptions, release_id: str | None, target: Path, style: Style) -> int:
    """Draw the population map: monthly bytes of each application against its burstiness."""
    from iosig.answers.wall.population_map import TABLES, build_view
    from iosig.reports.wall.population_map import draw
    from iosig.warehouse.releases.reading import open_release

    release = select_release(warehouse.store, release_id)
    with open_release(warehouse.store, release, TABLES) as connection:
        return _draw(draw, build_view(connection, release.release_id), target, style)


@_figure("clock", _direction_option)
def clock_command(
    warehouse: GlobalOptions, direction: str | None, release_id: str | None, target: Path, style: Style
) -> int:
    """Draw the checkpoint clock: each application's write interval and volume, and coinciding bursts."""
    from iosig.answers.wall.checkpoint_clock import TABLES, build_view
    from iosig.reports.wall.checkpoint_clock import draw
    from iosig.warehouse.releases.reading import open_release

    release = select_release(warehouse.store, release_id)
    with open_release(warehouse.store, release, TABLES) as connection:
        return _draw(draw, build_view(connection, release.release_id, direction or "write"), target, style)


@_figure(
    "changes",
    click.option(
        "--since",
        "before_id",
        metavar="RELEASE",
        shell_complete=quietly(releases),
        help="Earlier release. Default: the previous one.",
    ),
)
def changes_command(
    warehouse: GlobalOptions, before_id: str | None, release_id: str | None, target: Path, style: Style
) -> int:
    """Draw the changes between two releases: bytes, bursts and period of each signature."""
    from iosig.answers.wall.release_changes import TABLES, build_view
    from iosig.reports.wall.release_changes import draw
    from iosig.warehouse.releases.reading import open_release

    store, after = warehouse.store, select_release(warehouse.store, release_id)
    before = select_release(store, before_id) if before_id else _release_before(store, after)
    with open_release(store, before, TABLES) as old, open_release(store, after, TABLES) as new:
        return _draw(draw, build_view(old, new, (before.release_id, after.release_id)), target, style)


def _release_before(store: Store, after: Release) -> Release:
    from iosig.warehouse.errors import NothingToDo
    from iosig.warehouse.releases.releases import list_readable

    earlier = [release for release in list_readable(store) if release.sequence < after.sequence]
    if not earlier:
        raise NothingToDo(f"No release older than {after.release_id} is kept, so there is nothing to compare with.")
    return max(earlier, key=lambda release: release.sequence)
