"""`iosig land`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from flows.command.options import REFUSED, json_option
from warehouse.errors import UsageError
from warehouse.store.store import Store

if TYPE_CHECKING:
    from collections.abc import Sequence

    from flows.landing import Arrival


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
@json_option
@click.pass_obj
def land_command(
    obj: tuple[Store, Path | None],
    paths: tuple[str, ...],
    format_name: str | None,
    filesystem: str | None,
    time_zone: str | None,
    direction: str | None,
    value: str | None,
    replace: bool,
    as_json: bool,
) -> int:
    """Land job logs, polls and series: files, folders of files, or the URL of an LMT database.

    A file lands once, told by its content. Rows that cannot be read are kept in `rejects` with line and
    reason; a file that cannot be read at all is refused, the others land.
    """
    from flows.landing import Told, land_paths
    from flows.settings import load

    if format_name == "help":
        _list_formats()
        return 0
    if not paths:
        raise UsageError("Give the files or folders to land; `iosig land --format help` lists the formats.")
    store, settings_path = obj
    told = Told(filesystem=filesystem, time_zone=time_zone, direction=direction, value=value)
    arrivals = []
    for arrival in land_paths(
        store, load(settings_path, store.root), paths, told, format_name=format_name, replace=replace
    ):
        arrivals.append(arrival)
        click.echo(arrival.line(), err=True)
    _summarize(arrivals, as_json)
    return REFUSED if any(arrival.has_refusals for arrival in arrivals) else 0


def _list_formats() -> None:
    from flows.command.printing import show
    from warehouse.sources.protocol import sources

    show("Formats", ("format", "what it is"), [(source.name, source.doc) for source in sources()])


def _summarize(arrivals: Sequence[Arrival], as_json: bool) -> None:
    from flows.command.printing import show_json

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
        f"{summary['landed_files']:,} files landed with {summary['landed_rows']:,} rows, "
        f"{summary['landed_before']:,} landed before; refused: {summary['refused_rows']:,} rows and "
        f"{summary['refused_files']:,} whole files"
    )
    if any(arrival.has_refusals for arrival in arrivals):
        click.echo('`iosig run`, then `iosig sql "from rejects"` shows every refusal with its line and reason.')


def _document(arrival: Arrival) -> dict[str, object]:
    if arrival.refusal:
        return {"file": arrival.name, "reason": arrival.refusal.reason, "remedy": arrival.refusal.remedy}
    assert arrival.landed
    landing = arrival.landed.landing
    return {
        "file": arrival.name,
        "landing_id": landing.landing_id,
        "format": landing.format,
        "is_new": arrival.landed.is_new,
        "landed_rows": landing.row_count(),
        "refused_rows": landing.refused_count,
    }
