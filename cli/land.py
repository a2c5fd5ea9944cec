"""`iosig land`: land files, and new data from servers."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from iosig.cli.options import (
    DAY,
    EXIT_REFUSED,
    GlobalOptions,
    is_strict,
    json_option,
    name_default_warehouse,
    refuse,
    strict_option,
)
from iosig.cli.printing import printable
from iosig.warehouse.engine_paths import is_url
from iosig.warehouse.errors import NothingToDo, UsageError, meant
from iosig.warehouse.store.store import Store

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from iosig.answers.single.explanation import Explanation
    from iosig.settings.model import Settings
    from iosig.streams.landing import Arrival, ReadOptions


@click.command("land")
@click.argument("paths", nargs=-1)
@click.option("--format", "format_name", help="Format, if it cannot be detected. `--format help` lists all.")
@click.option("--filesystem", help="File system of the polls. Overrides the input.")
@click.option("--time-zone", help="IANA time zone of times without one, such as America/Los_Angeles.")
@click.option("--direction", type=click.Choice(["read", "write"]), help="Direction of the bytes of bare columns.")
@click.option(
    "--value", type=click.Choice(["counter", "rate", "volume"]), help="Quantity in bare columns. Default: a counter."
)
@click.option("--job", "job_id", metavar="JOBID", help="Scheduler's job id of traces that name no job.")
@click.option(
    "--explain",
    is_flag=True,
    help="Land nothing. Print how each file is read: its format, the fields taken and ignored, the first rows.",
)
@click.option("--replace", is_flag=True, help="Land inputs again that have already landed, with these options.")
@click.option(
    "--prometheus",
    "servers",
    metavar="URL",
    multiple=True,
    help="Query the storage counters of a Prometheus server, since the last query.",
)
@click.option("--slurm", is_flag=True, help="Query Slurm: accounting since the last query, and the queue.")
@click.option(
    "--since",
    type=DAY,
    metavar="YYYY-MM-DD",
    help="With --prometheus or --slurm: ask from this day (UTC) on, in place of where it was left.",
)
@click.option("--follow", is_flag=True, help="Watch folders and poll servers, and land new data until interrupted.")
@click.option(
    "--settle",
    "settle_s",
    metavar="SECONDS",
    type=click.FloatRange(min=0),
    default=60.0,
    show_default=True,
    help=(
        "With --follow: time without changes after which a file is complete. A file NAME.done marks NAME complete "
        "at once."
    ),
)
@click.option("--require-marker", is_flag=True, help="With --follow: land only files with a marker file NAME.done.")
@click.option(
    "--interval",
    "interval_s",
    metavar="SECONDS",
    type=click.FloatRange(min=0.01),
    default=5.0,
    show_default=True,
    help="With --follow: time between scans.",
)
@json_option
@strict_option
@click.pass_obj
def land_command(
    warehouse: GlobalOptions,
    /,
    paths: tuple[str, ...],
    format_name: str | None,
    filesystem: str | None,
    time_zone: str | None,
    direction: str | None,
    value: str | None,
    job_id: str | None,
    explain: bool,
    replace: bool,
    as_json: bool,
    servers: tuple[str, ...],
    slurm: bool,
    since: datetime | None,
    follow: bool,
    **watching: Any,
) -> int:
    """Land files, folders of files, the URL of an LMT database, and new data from Prometheus and Slurm.

    Each file lands once, identified by its content. Rows that cannot be read are kept in `rejects` with line and
    reason. A file that cannot be read is refused; the others land. --explain shows how files are read. With --follow,
    folders are watched: complete files land, and files that are still being written are skipped. Servers are polled
    repeatedly.
    """
    from iosig.streams.landing import ReadOptions, land_paths

    if format_name == "help":
        _list_formats(as_json)
        return 0
    remote = _Servers(servers, slurm, since and since.replace(tzinfo=UTC))
    _check(paths, remote, follow=follow, replace=replace, require_marker=watching["require_marker"])
    store = warehouse.store
    read_options = ReadOptions(
        filesystem=filesystem, time_zone=time_zone, direction=direction, value=value, job_id=job_id
    )
    settings = warehouse.settings()
    _require_there(paths, is_private=settings.privacy.is_pseudonymized)
    if explain:
        refuse((bool(remote) or follow or replace, "--explain needs files, and no --follow or --replace."))
        return _explain(store, settings, paths, read_options, format_name, as_json=as_json)
    name_default_warehouse(store)
    if follow:
        _follow(store, settings, paths, remote, read_options, format_name, as_json=as_json, **watching)
        return 0
    from iosig.flows.executors import remote_executor

    arrivals = []
    with remote_executor(settings, store.root) as executor:
        landed = land_paths(
            store, settings, paths, read_options, format_name=format_name, replace=replace, executor=executor
        )
        for arrival in chain(landed, remote.land(store, settings, read_options)):
            arrivals.append(arrival)
            click.echo(arrival.line(), err=True)
    _summarize(store, settings, arrivals, as_json=as_json)
    return _exit_code(arrivals)


@dataclass(frozen=True, slots=True)
class _Servers:
    """Prometheus and Slurm servers to query, with an optional start time instead of the last position."""

    servers: tuple[str, ...]
    is_slurm: bool
    since: datetime | None

    def __bool__(self) -> bool:
        return bool(self.servers) or self.is_slurm

    def land(self, store: Store, settings: Settings, read_options: ReadOptions) -> Iterator[Arrival]:
        """Query the servers, and land the new data."""
        from iosig.streams.prometheus import land_prometheus
        from iosig.streams.slurm import land_slurm

        for url in self.servers:
            yield from land_prometheus(store, settings, url, read_options, since=self.since)
        if self.is_slurm:
            yield from land_slurm(store, settings, since=self.since)


def _check(paths: Sequence[str], remote: _Servers, *, follow: bool, replace: bool, require_marker: bool) -> None:
    """Raise UsageError for options that exclude each other."""
    has_folders = bool(paths or remote) and all(Path(path).is_dir() for path in paths)
    refuse(
        (
            follow and replace,
            "--replace cannot be combined with --follow: existing files would land again at every scan.",
        ),
        (require_marker and not follow, "--require-marker needs --follow."),
        (remote.since is not None and not remote, "--since needs --prometheus or --slurm."),
        (
            remote.since is not None and follow,
            "--since cannot be combined with --follow: land once with --since, then follow.",
        ),
        (follow and not has_folders, "--follow needs folders to watch."),
        (not paths and not remote, "Name files or folders to land. `iosig land --format help` lists the formats."),
    )


def _require_there(paths: Sequence[str], *, is_private: bool) -> None:
    """Raise UsageError for a missing path; is_private: identify it by its position in the command, not by name."""
    for place, path in enumerate(paths, start=1):
        if not is_url(path) and not os.path.lexists(path):
            if is_private:
                raise UsageError(f"Input {place} of {len(paths)} does not exist. Nothing was landed.")
            raise UsageError(f"{printable(path)} does not exist.{_near(Path(path))} Nothing was landed.")


def _near(path: Path) -> str:
    """Suggest an existing file with a similar name; empty without a close match."""
    with suppress(OSError):
        return printable(meant(path.name, os.listdir(path.parent), max_count=1))
    return ""


def _exit_code(arrivals: Sequence[Arrival]) -> int:
    """Return 3 if all input was refused, else 0; with --strict 3 if any row was refused, and 5 if nothing was new."""
    if arrivals and all(arrival.is_refused for arrival in arrivals):
        return EXIT_REFUSED
    if not is_strict():
        return 0
    if any(arrival.has_refusals for arrival in arrivals):
        return EXIT_REFUSED
    is_new = any(arrival.landed is not None and arrival.landed.is_new for arrival in arrivals)
    return 0 if is_new else NothingToDo.exit_code


def _follow(
    store: Store,
    settings: Settings,
    paths: Sequence[str],
    remote: _Servers,
    read_options: ReadOptions,
    format_name: str | None,
    *,
    settle_s: float,
    require_marker: bool,
    interval_s: float,
    as_json: bool,
) -> None:
    """Land new files and query servers until a signal arrives; print one line per input."""
    from iosig.cli.documents import LandedFileDocument
    from iosig.streams.inbox import Inbox, follow
    from iosig.warehouse.interrupts import Stop, stop_on_signals

    stop = Stop()
    with stop_on_signals(stop):
        watched = ", ".join([*paths, *remote.servers, *(["Slurm"] if remote.is_slurm else [])])
        click.echo(f"Watching {watched}. Press Ctrl-C to stop.", err=True)
        inboxes = [Inbox(Path(path), settle_s, require_marker) for path in paths]
        land_remote = partial(remote.land, store, settings, read_options)
        for arrival in follow(
            store, settings, inboxes, read_options, stop, land_remote, interval_s=interval_s, format_name=format_name
        ):
            line = LandedFileDocument(**_document(arrival)).json_text() if as_json else arrival.line()
            click.echo(line, err=not as_json)


def _explain(
    store: Store,
    settings: Settings,
    paths: Sequence[str],
    read_options: ReadOptions,
    format_name: str | None,
    *,
    as_json: bool,
) -> int:
    """Print how each input is read; return 3 if all are refused."""
    from iosig.answers.single.explanation import explain_input, make_document
    from iosig.streams.landing import names_in

    names, are_refused = names_in(store, settings), list[bool]()
    for path in paths:
        explanation = explain_input(Path(path), settings, read_options, format_name, names)
        are_refused.append(explanation.refusal is not None)
        shown_name = path if names is None else names.path(path)
        if as_json:
            click.echo(make_document(shown_name, explanation).json_text())
        else:
            _show_explanation(shown_name, explanation)
    return EXIT_REFUSED if all(are_refused) else 0


def _show_explanation(name: str, explanation: Explanation) -> None:
    from iosig.cli.printing import format_title, say, show

    source, refusal = explanation.source, explanation.refusal
    say(f"{name}: {f'{source.name}. {source.doc}' if source else 'no known format'}", bold=True)
    if explanation.taken:
        say(
            f"Taken ({len(explanation.taken)}): "
            + ", ".join(f"{field} ({column})" for field, column in explanation.taken.items())
        )
    if explanation.ignored:
        say(f"Ignored ({len(explanation.ignored)}): " + ", ".join(explanation.ignored))
    if refusal:
        say(f"Refused: {refusal}")
    for table, rows in explanation.rows.items():
        count = explanation.row_counts[table]
        title = f"{format_title(table, rows.height, count)}{'' if explanation.is_complete else ' that were read'}"
        show(title, rows.columns, rows.rows())


def _list_formats(as_json: bool) -> None:
    from iosig.cli.printing import show, show_json
    from iosig.warehouse.sources.protocol import list_sources

    if as_json:
        from iosig.cli.documents import FormatsDocument

        show_json(FormatsDocument(formats=list_sources()))
        return
    show("Formats", ("format", "what it is"), [(source.name, source.doc) for source in list_sources()])


def _summarize(store: Store, settings: Settings, arrivals: Sequence[Arrival], *, as_json: bool) -> None:
    """Print the landed and refused inputs, and warn of new inputs with timestamps that look wrong by whole hours."""
    from iosig.answers.time_shifts import check_landings
    from iosig.cli.printing import say, show_json
    from iosig.reports.texts import format_count

    landings = [arrival.landed for arrival in arrivals if arrival.landed]
    new = [landed.landing for landed in landings if landed.is_new]
    warnings = check_landings(store, settings, new)
    summary = {
        "landed_files": len(new),
        "landed_before": len(landings) - len(new),
        "refused_files": sum(arrival.refusal is not None for arrival in arrivals),
        "landed_rows": sum(landing.row_count() for landing in new),
        "refused_rows": sum(landing.refused_count for landing in new),
    }
    if as_json:
        from iosig.cli.documents import LandingDocument

        files = [_document(arrival) for arrival in arrivals]
        show_json(LandingDocument(**summary, warnings=warnings, files=files))
        return
    say(
        f"{format_count(summary['landed_files'], 'file')} landed with {format_count(summary['landed_rows'], 'row')}, "
        f"{summary['landed_before']:,} already landed; refused: {format_count(summary['refused_rows'], 'row')} and "
        f"{format_count(summary['refused_files'], 'whole file')}"
    )
    for warning in warnings:
        say(f"Warning: {warning}")
    if any(arrival.has_refusals for arrival in arrivals):
        say('`iosig run`, then `iosig sql "from rejects"` lists refused rows with line and reason.')


def _document(arrival: Arrival) -> dict[str, object]:
    name, refusal = arrival.shown_name, arrival.shown_refusal
    if refusal:
        return {"file": name, "reason": refusal.reason, "remedy": refusal.remedy}
    if not arrival.landed:
        return {"file": name, "is_new": False, "landed_rows": 0, "refused_rows": 0}
    landing = arrival.landed.landing
    return {
        "file": name,
        "landing_id": landing.landing_id,
        "input_format": landing.format,
        "is_new": arrival.landed.is_new,
        "landed_rows": landing.row_count(),
        "refused_rows": landing.refused_count,
        "time_zone": landing.time_zone,
        "first_at": landing.first_at,
        "last_at": landing.last_at,
        "other_time_zone": arrival.other_zone,
    }
