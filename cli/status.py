"""`iosig status`: show the condition of a warehouse."""

from __future__ import annotations

import signal
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from iosig.cli.options import GlobalOptions, json_option
from iosig.warehouse.errors import UsageError
from iosig.warehouse.store.store import Store

if TYPE_CHECKING:
    from collections.abc import Sequence

    from iosig.answers.status.condition import Condition
    from iosig.answers.status.problems import Problem
    from iosig.settings.model import Settings

#: exit code if the warehouse has problems, for a monitor
NOT_WELL = 7
_INTERVAL_S = 30.0


@click.command("status")
@json_option
@click.option(
    "--format", "form", type=click.Choice(["prometheus"]), help="Print metrics for the Prometheus node exporter."
)
@click.option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="With --format: write to this file, atomically.",
)
@click.option("--watch", "is_watched", is_flag=True, help="Show current traffic, its jobs and the forecast, until `q`.")
@click.option(
    "--interval",
    "interval_s",
    metavar="SECONDS",
    type=click.FloatRange(min=1),
    help="With --watch: time between refreshes. Default: 30.",
)
@click.option("--notify", "is_notified", is_flag=True, help="Send due notifications, as configured in [alerts].")
@click.pass_obj
def status_command(
    warehouse: GlobalOptions,
    as_json: bool,
    form: str | None,
    output: Path | None,
    is_watched: bool,
    interval_s: float | None,
    is_notified: bool,
) -> int:
    """Show the state of a warehouse: problems, notes, release, landed and waiting inputs, disk and next night.

    Exits with 7 if there are problems, so that a monitor can run it. Notes, such as a rollback in force or a release
    that passed with warnings, do not change the exit code. With --watch, the screen is refreshed until interrupted, and
    the exit code is 0. It shows each file system's rates, the jobs that move the bytes, and the next bursts, as far as
    polls and jobs have landed.
    """
    from iosig.answers.status.exposition import exposition
    from iosig.answers.status.problems import read_status
    from iosig.cli.printing import show_json
    from iosig.flows.notifications import require_own_sendmail, tell
    from iosig.flows.prefect_server import PrefectServer

    store = warehouse.store
    if not store.exists:
        raise UsageError(f"There is no warehouse in {store.name}.")
    if output and not form:
        raise UsageError("--output needs --format.")
    if interval_s is not None and not is_watched:
        raise UsageError("--interval needs --watch.")
    settings = warehouse.settings()
    if is_watched:
        if form or is_notified:
            raise UsageError("--watch cannot be combined with --format or --notify.")
        _watch(store, settings, interval_s or _INTERVAL_S, as_json=as_json)
        return 0
    status = read_status(store, settings)
    condition, problems, notes = status.condition, status.problems, status.notes
    server = PrefectServer.for_warehouse(store, settings)
    server_state = server.describe_state()
    if is_notified:
        require_own_sendmail(settings)
        for fault in tell(store, settings.alerts, problems, condition.at):
            click.echo(f"iosig: {fault}", err=True)
    if form:
        _expose(exposition(condition, problems), output)
    elif as_json:
        from iosig.answers.status.document import build_document

        show_json(build_document(condition, problems, notes, server.ui_url, server_state))
    else:
        _show(condition, problems, notes, f"{server.ui_url} ({server_state})" if server_state else None)
    return NOT_WELL if problems else 0


def _watch(store: Store, settings: Settings, interval_s: float, *, as_json: bool) -> None:
    from iosig.answers.moment.document import build_document
    from iosig.answers.moment.query import LiveView
    from iosig.cli import watch_loop
    from iosig.cli.printing import terminal_width
    from iosig.warehouse.interrupts import Stop, stop_on_signals

    look, stop = LiveView(store, settings).take_snapshot, Stop()
    with stop_on_signals(stop), suppress(KeyboardInterrupt), watch_loop.waiting(stop) as wait:
        # a refresh holds no state, so an interrupt need not wait for its end
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if as_json:
            watch_loop.watch_as_json(
                look, lambda moment: click.echo(build_document(moment).json_text()), wait, interval_s
            )
        elif watch_loop.is_plain():
            watch_loop.show_once(look, watch_loop.create_console(terminal_width(), is_plain=True))
        else:
            watch_loop.watch_on_screen(look, watch_loop.create_console(None, is_plain=False), wait, interval_s)


def _expose(text: str, to: Path | None) -> None:
    from iosig.warehouse.placing import atomic_write

    if to is None:
        click.echo(text, nl=False)
        return
    with atomic_write(to) as temporary:
        temporary.write_text(text)


def _show(condition: Condition, problems: Sequence[Problem], notes: Sequence[Problem], server: str | None) -> None:
    from iosig.cli.printing import bytes_text, say, show
    from iosig.reports.texts import format_count

    for problem in problems:
        say(f"! {problem.sentence}", fg="red")
    for note in notes:
        say(f"- {note.sentence}", fg="yellow")
    if not problems:
        click.echo("No problems." if notes else "All is well.")
    since = f", {_moment(condition.released_at)}" if condition.released_at else ""
    free = f"{bytes_text(condition.disk_free_bytes)} of {bytes_text(condition.disk_total_bytes)}"
    lock = condition.held_by
    rows = [
        ("release", f"{condition.release_id} ({condition.verdict}){since}" if condition.release_id else "none yet"),
        ("waiting", format_count(len(condition.waiting), "landed input")),
        ("running", f"process {lock['process']} on {lock['host']}, since {lock['since']}" if lock else "none"),
        ("next night", _moment(condition.next_run_at)),
        ("disk", f"{free} free"),
    ]
    if server:
        rows.append(("Prefect server", server))
    show(condition.warehouse, ("what", "now"), rows)
    if condition.sources:
        source_rows = [
            (item.table, _moment(item.landed_at[-1]), len(item.landed_at), sum(item.refused_rows))
            for item in condition.sources
        ]
        show("Landed (the latest 200 of each)", ("rows of", "last (UTC)", "inputs", "refused rows"), source_rows)
    if condition.filesystems:
        filesystem_rows = [
            (
                item.filesystem,
                f"{item.last_day}{' (partial)' if item.is_partial_day else ''}",
                bytes_text(item.bytes_moved),
                f"{item.missing_ratio:.1%}",
            )
            for item in condition.filesystems
        ]
        show("File systems, last complete day", ("file system", "day", "moved", "polls missing"), filesystem_rows)


def _moment(at: object) -> str:
    return str(at)[:16]
