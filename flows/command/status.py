"""`iosig status`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from flows.command.options import json_option
from warehouse.errors import UsageError
from warehouse.store.store import Store

if TYPE_CHECKING:
    from collections.abc import Sequence

    from flows.watch.condition import Condition
    from flows.watch.problems import Problem

#: the exit code where something is wrong, for a monitor
NOT_WELL = 7


@click.command("status")
@json_option
@click.option("--format", "form", type=click.Choice(["prometheus"]), help="Print it for the node exporter instead.")
@click.option("--to", type=click.Path(path_type=Path, dir_okay=False), help="Write that into this file, in one step.")
@click.option("--tell", "is_told", is_flag=True, help="Send the notices of the settings' [watch] that are due.")
@click.pass_obj
def status_command(
    obj: tuple[Store, Path | None], as_json: bool, form: str | None, to: Path | None, is_told: bool
) -> int:
    """Say how a warehouse fares: its release, what has landed and waits, the disk, the next night, what is wrong.

    Exits with 7 where something is wrong: run it from a monitor.
    """
    from flows.command.printing import show_json
    from flows.settings import load
    from flows.watch.condition import condition_of
    from flows.watch.exposition import exposition
    from flows.watch.notices import tell
    from flows.watch.problems import problems_of

    store, settings_path = obj
    if not store.exists:
        raise UsageError(f"There is no warehouse in {store.name}.")
    if to and not form:
        raise UsageError("--to is where --format writes to.")
    settings = load(settings_path, store.root)
    condition = condition_of(store, settings)
    problems = problems_of(condition, settings.watch)
    if is_told:
        for fault in tell(store, settings.watch, problems, condition.at):
            click.echo(f"iosig: {fault}", err=True)
    if form:
        _expose(exposition(condition, problems), to)
    elif as_json:
        show_json("status", asdict(condition) | {"problems": [asdict(problem) for problem in problems]})
    else:
        _show(condition, problems)
    return NOT_WELL if problems else 0


def _expose(text: str, to: Path | None) -> None:
    from warehouse.placing import moved_into_place

    if to is None:
        click.echo(text, nl=False)
        return
    with moved_into_place(to) as temporary:
        temporary.write_text(text)


def _show(condition: Condition, problems: Sequence[Problem]) -> None:
    from flows.command.printing import bytes_text, printable, say, show

    for problem in problems:
        say(click.style(printable(f"! {problem.sentence}"), fg="red"))
    if not problems:
        click.echo("All is well.")
    since = f", {_moment(condition.released_at)}" if condition.released_at else ""
    free = f"{bytes_text(condition.disk_free_bytes)} of {bytes_text(condition.disk_total_bytes)}"
    held = condition.held_by
    rows = [
        ("release", f"{condition.release_id} ({condition.verdict}){since}" if condition.release_id else "none yet"),
        ("waiting", f"{len(condition.waiting):,} landed inputs"),
        ("running", f"process {held['process']} on {held['host']}, since {held['since']}" if held else "nobody"),
        ("next night", _moment(condition.next_run_at)),
        ("disk", f"{free} free"),
    ]
    show(condition.warehouse, ("what", "now"), rows)
    if condition.sources:
        told = [
            (one.table, _moment(one.landed_at[-1]), len(one.landed_at), sum(one.refused_rows))
            for one in condition.sources
        ]
        show("Landed (the latest 200 of each)", ("rows of", "last (UTC)", "inputs", "refused rows"), told)
    if condition.filesystems:
        moved = [
            (one.filesystem, str(one.last_day), bytes_text(one.bytes_moved), f"{one.missing_ratio:.1%}")
            for one in condition.filesystems
        ]
        show("File systems, their last day", ("file system", "day", "moved", "polls missing"), moved)


def _moment(at: object) -> str:
    return str(at)[:16]
