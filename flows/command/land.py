"""`iosig land`."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from flows.command.options import DAY, REFUSED, json_option
from warehouse.errors import UsageError
from warehouse.store.store import Store

if TYPE_CHECKING:
    from collections.abc import Sequence

    from flows.landing import Arrival, Told
    from flows.settings import Settings


@click.command("land")
@click.argument("paths", nargs=-1)
@click.option(
    "--format", "format_name", help="The format, where the content does not tell; `--format help` lists them."
)
@click.option("--filesystem", help="The file system of the polls, whatever the input says.")
@click.option("--time-zone", help="IANA zone of naive local times, as America/Los_Angeles; UTC if not given.")
@click.option("--direction", type=click.Choice(["read", "write"]), help="Which way the bytes of bare columns went.")
@click.option(
    "--value", type=click.Choice(["counter", "rate", "volume"]), help="What bare columns hold; a counter if not given."
)
@click.option("--replace", is_flag=True, help="Land anew what was landed before, with these options.")
@click.option(
    "--slurm", is_flag=True, help="Ask Slurm: its accounting since it was asked last, and what runs and waits."
)
@click.option(
    "--since",
    type=DAY,
    metavar="YYYY-MM-DD",
    help="With --slurm: ask from this day (UTC) on, in place of where it was left.",
)
@click.option("--follow", is_flag=True, help="Watch the folders, and land what arrives, until a signal comes.")
@click.option(
    "--settle",
    "settle_s",
    metavar="SECONDS",
    type=click.FloatRange(min=0),
    default=60.0,
    show_default=True,
    help="With --follow: what has not changed for so long is whole; so is what has a NAME.done beside it.",
)
@click.option("--only-done", is_flag=True, help="With --follow: land nothing that has no NAME.done beside it.")
@click.option(
    "--interval",
    "interval_s",
    metavar="SECONDS",
    type=click.FloatRange(min=0.01),
    default=5.0,
    show_default=True,
    help="With --follow: how often to look.",
)
@json_option
@click.pass_obj
def land_command(
    obj: tuple[Store, Path | None],
    /,
    paths: tuple[str, ...],
    format_name: str | None,
    filesystem: str | None,
    time_zone: str | None,
    direction: str | None,
    value: str | None,
    replace: bool,
    as_json: bool,
    slurm: bool,
    since: datetime | None,
    follow: bool,
    **watching: Any,
) -> int:
    """Land job logs, polls and series: files, folders of files, the URL of an LMT database, or what Slurm says.

    A file lands once, told by its content. Rows that cannot be read are kept in `rejects` with line and
    reason; a file that cannot be read at all is refused, the others land. With --follow folders are watched: what
    is whole lands, and what is being written is left alone.
    """
    from flows.landing import Told, land_paths
    from flows.live.slurm import land_slurm
    from flows.night.executors import helped
    from flows.settings import load

    _check(paths, follow=follow, replace=replace, only_done=watching["only_done"], slurm=slurm, since=since)
    if format_name == "help":
        _list_formats()
        return 0
    if not paths and not slurm:
        raise UsageError("Give the files or folders to land; `iosig land --format help` lists the formats.")
    store, settings_path = obj
    told = Told(filesystem=filesystem, time_zone=time_zone, direction=direction, value=value)
    if follow:
        _follow(store, load(settings_path, store.root), paths, told, format_name, as_json=as_json, **watching)
        return 0
    arrivals, settings = [], load(settings_path, store.root)
    asked = land_slurm(store, settings, since=since and since.replace(tzinfo=UTC)) if slurm else ()
    with helped(settings, store.root):
        for arrival in chain(land_paths(store, settings, paths, told, format_name=format_name, replace=replace), asked):
            arrivals.append(arrival)
            click.echo(arrival.line(), err=True)
    _summarize(arrivals, as_json)
    return REFUSED if any(arrival.has_refusals for arrival in arrivals) else 0


def _check(
    paths: Sequence[str], *, follow: bool, replace: bool, only_done: bool, slurm: bool, since: datetime | None
) -> None:
    """Refuse options that do not go together."""
    faults = (
        (follow and replace, "--replace does not go with --follow: what is there already would land again and again."),
        (only_done and not follow, "--only-done goes with --follow."),
        (since is not None and not slurm, "--since goes with --slurm."),
        (slurm and follow, "--slurm does not go with --follow: the night asks by itself ([schedule] slurm)."),
        (follow and not all(Path(path).is_dir() for path in paths), "With --follow give the folders to watch."),
    )
    for is_fault, sentence in faults:
        if is_fault:
            raise UsageError(sentence)


def _follow(
    store: Store,
    settings: Settings,
    paths: Sequence[str],
    told: Told,
    format_name: str | None,
    *,
    settle_s: float,
    only_done: bool,
    interval_s: float,
    as_json: bool,
) -> None:
    """Land what arrives in folders until a signal comes, and tell of each input: a line, or one of JSON."""
    from flows.inbox import Inbox, follow
    from flows.stopping import Stop, stopped_by_signals

    stop = Stop()
    with stopped_by_signals(stop):
        click.echo(f"Watching {', '.join(paths)}; end with Ctrl-C.", err=True)
        inboxes = [Inbox(Path(path), settle_s, only_done) for path in paths]
        for arrival in follow(store, settings, inboxes, told, stop, interval_s=interval_s, format_name=format_name):
            click.echo(json.dumps(_document(arrival)) if as_json else arrival.line(), err=not as_json)


def _list_formats() -> None:
    from flows.command.printing import show
    from warehouse.sources.protocol import sources

    show("Formats", ("format", "what it is"), [(source.name, source.doc) for source in sources()])


def _summarize(arrivals: Sequence[Arrival], as_json: bool) -> None:
    from flows.command.printing import show_json
    from reports.texts import counted

    landings = [arrival.landed for arrival in arrivals if arrival.landed]
    summary = {
        "landed_files": sum(landed.is_new for landed in landings),
        "landed_before": sum(not landed.is_new for landed in landings),
        "refused_files": sum(arrival.refusal is not None for arrival in arrivals),
        "landed_rows": sum(landed.landing.row_count() for landed in landings if landed.is_new),
        "refused_rows": sum(landed.landing.refused_count for landed in landings if landed.is_new),
    }
    if as_json:
        show_json(summary | {"files": [_document(arrival) for arrival in arrivals]})
        return
    click.echo(
        f"{counted(summary['landed_files'], 'file')} landed with {counted(summary['landed_rows'], 'row')}, "
        f"{summary['landed_before']:,} landed before; refused: {counted(summary['refused_rows'], 'row')} and "
        f"{counted(summary['refused_files'], 'whole file')}"
    )
    if any(arrival.has_refusals for arrival in arrivals):
        click.echo('`iosig run`, then `iosig sql "from rejects"` shows every refusal with its line and reason.')


def _document(arrival: Arrival) -> dict[str, object]:
    if arrival.refusal:
        return {"file": arrival.name, "reason": arrival.refusal.reason, "remedy": arrival.refusal.remedy}
    if not arrival.landed:
        return {"file": arrival.name, "is_new": False, "landed_rows": 0, "refused_rows": 0}
    landing = arrival.landed.landing
    return {
        "file": arrival.name,
        "landing_id": landing.landing_id,
        "format": landing.format,
        "is_new": arrival.landed.is_new,
        "landed_rows": landing.row_count(),
        "refused_rows": landing.refused_count,
    }
