"""`iosig forecast`: forecast the load of a file system."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from iosig.cli.completion import filesystems, quietly
from iosig.cli.options import (
    GlobalOptions,
    answer_options,
    draw_into,
    select_release,
)
from iosig.cli.windows import read_instant

if TYPE_CHECKING:
    from iosig.answers.forecast.jobs import JobAhead
    from iosig.answers.forecast.query import ForecastResult
    from iosig.reports.style import Style


@click.command("forecast")
@click.argument("filesystem", shell_complete=quietly(filesystems))
@click.option(
    "--hours",
    default=6.0,
    show_default=True,
    type=click.FloatRange(min=0, max=48, min_open=True),
    help="Hours ahead.",
)
@click.option(
    "--step",
    "step_minutes",
    default=10,
    show_default=True,
    type=click.IntRange(min=1, max=360),
    help="Minutes per step.",
)
@click.option("--at", metavar="TIME", callback=read_instant, help="Start of the forecast. Default: the newest poll.")
@click.option(
    "--what-if",
    "traces",
    metavar="TRACE",
    multiple=True,
    type=click.Path(path_type=Path, exists=True),
    help=(
        "Assume that this run starts now: a compressed trace, or several Recorder traces (repeat --what-if) with "
        "--ranks."
    ),
)
@click.option("--ranks", "rank_count", type=click.IntRange(min=1), help="Number of ranks to extrapolate the traces to.")
@answer_options
@click.pass_obj
def forecast_command(
    warehouse: GlobalOptions,
    filesystem: str,
    hours: float,
    step_minutes: int,
    at: datetime | None,
    traces: tuple[Path, ...],
    rank_count: int | None,
    release_id: str | None,
    as_json: bool,
    plot: Path | None,
    style: Style,
) -> int:
    """Forecast a file system's rate for the next hours, and the times at which bursts will coincide.

    The forecast uses the signatures of running and waiting jobs, the run and wait times of similar jobs, and the
    unattributed traffic at comparable times: see docs/forecast.md.
    """
    from iosig.answers.forecast.query import Query, build_document, build_view, forecast_load

    release = select_release(warehouse.store, release_id)
    query = Query(filesystem, hours, step_minutes, at, _what_if(traces, rank_count))
    result = forecast_load(warehouse.store, release, warehouse.settings(), query)
    if plot is not None:
        from iosig.reports.forecast import draw

        draw_into(plot, draw, build_view(result), style)
    if as_json:
        from iosig.cli.printing import show_json

        show_json(build_document(result, release.release_id))
    else:
        _show(result)
    return 0


def _what_if(traces: tuple[Path, ...], rank_count: int | None) -> JobAhead | None:
    from iosig.warehouse.errors import UsageError

    if not traces:
        if rank_count is not None:
            raise UsageError("--ranks needs traces to extrapolate: add --what-if TRACE.")
        return None
    from iosig.answers.forecast.what_if import build_what_if_job
    from iosig.cli.printing import progress_bar

    return build_what_if_job(traces, rank_count, progress_bar)


#: maximum number of collisions in the table, each of two applications
_MAX_COLLISIONS = 10
#: maximum length of a name, so that a table fits a terminal of 80 columns
#: maximum number of jobs named in a sentence
_MAX_NAME_CHARS, _MAX_JOBS = 20, 3


def _show(result: ForecastResult) -> None:
    from iosig.cli.printing import printable, say, show

    hours = len(result.forecast.expected_bytes_per_s) * result.forecast.step_s / 3600
    say(printable(f"{result.query.filesystem}, {hours:g} hours from {result.at:%Y-%m-%d %H:%MZ}"))
    columns = ("from", "expected", "80 % within", "known", "unplanned")
    rows = [_cells(result, place) for place in range(len(result.edges) - 1)]
    show("", (*columns, "added") if result.without else columns, rows, last=("unplanned", "known"))
    rows = _meetings(result)
    if rows:
        show("Overlapping bursts", ("hour from", "application", "and", "seconds", "bytes"), rows)
    for line in _remarks(result):
        say(printable(line))


def _cells(result: ForecastResult, place: int) -> tuple[Any, ...]:
    from iosig.cli.printing import bytes_text
    from iosig.reports.texts import RATES, choose_unit

    forecast = result.forecast
    high = float(forecast.high_bytes_per_s[place])
    unit = choose_unit(high, RATES, "B/s")
    low = float(forecast.low_bytes_per_s[place])
    cells = (
        f"{result.edges[place]:%H:%M}",
        f"{bytes_text(float(forecast.expected_bytes_per_s[place]))}/s",
        f"{low / unit.size:.3g} to {high / unit.size:.3g} {unit.name}",
        f"{bytes_text(float(forecast.applications_bytes_per_s[:, place].sum()))}/s",
        f"{bytes_text(float(forecast.unknown_bytes_per_s[place]))}/s",
    )
    if result.without is None:
        return cells
    added = float(forecast.expected_bytes_per_s[place] - result.without.expected_bytes_per_s[place])
    return (*cells, f"{bytes_text(added)}/s")


def _meetings(result: ForecastResult) -> list[tuple[Any, ...]]:
    from iosig.answers.forecast.query import list_collisions
    from iosig.cli.printing import bytes_text
    from iosig.reports.texts import shorten_id

    return [
        (
            f"{row['from'][11:16]}",
            shorten_id(row["first_application"], _MAX_NAME_CHARS),
            shorten_id(row["second_application"], _MAX_NAME_CHARS),
            f"{row['meeting_s']:,.0f}",
            bytes_text(row["meeting_bytes"]),
        )
        for row in list_collisions(result)[:_MAX_COLLISIONS]
    ]


def _remarks(result: ForecastResult) -> list[str]:
    """Return notes on how to interpret the table's numbers."""
    from iosig.answers.forecast.query import count_jobs

    counts = count_jobs(result)
    lines = [
        f"{counts['running']:,} jobs run and {counts['waiting']:,} wait; {counts['known']:,} of them have a signature."
    ]
    for status, label in (("unknown", "No signature"), ("held", "Held")):
        names = [f"{job.name} ({job.application_id or '-'})" for job in result.jobs if job.status == status]
        more = ", ..." if len(names) > _MAX_JOBS else "."
        if names:
            lines.append(f"{label}: {', '.join(names[:_MAX_JOBS])}{more}")
    lines.append(f"Unplanned: other traffic, estimated from similar times of the last {result.past_days:.1f} days.")
    return lines
