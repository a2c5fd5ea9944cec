"""`iosig forget`: erase an input, or all data of a user."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from iosig.cli.options import GlobalOptions, json_option, strict_option, wait_option
from iosig.warehouse.errors import UsageError

if TYPE_CHECKING:
    from iosig.flows.forget import AffectedData


@click.command("forget")
@click.option("--landing", "landing_id", metavar="ID", help="Erase an input, in all its landings.")
@click.option("--user", metavar="NAME", help="Erase all data of a user, and the name in all other data.")
@click.option("--reason", default="requested", show_default=True, help="Reason to record in the history.")
@click.option("--dry-run", is_flag=True, help="Print what would be erased, and change nothing.")
@wait_option
@json_option
@strict_option
@click.pass_obj
def forget_command(
    warehouse: GlobalOptions,
    landing_id: str | None,
    user: str | None,
    reason: str,
    dry_run: bool,
    lock_timeout_s: float,
    as_json: bool,
) -> int:
    """Erase an input, or all data of a user, from the warehouse and every release that is kept.

    Files are not edited. Each affected release is replaced by one computed without the data, and its id redirects
    there; then the old files and landed data are deleted. To resume an interrupted run, run the same command again.
    Backups, exports and the original inputs are not erased.
    """
    from iosig.cli.printing import progress, show_json
    from iosig.flows.forget import ErasureRequest, find, forget, not_erased
    from iosig.warehouse.store.form import require_form
    from iosig.warehouse.store.store import lock_warehouse

    if (landing_id is None) == (user is None):
        raise UsageError("Pass either --landing or --user.")
    store = warehouse.store
    if not store.exists:
        raise UsageError(f"There is no warehouse in {store.name}.")
    if user is not None and user and user in reason:
        raise UsageError(
            "--reason contains the user's name, but the history keeps the reason. Remove the name from it."
        )
    require_form(store)
    settings = warehouse.settings()
    with lock_warehouse(store, lock_timeout_s):
        affected = find(store, settings, ErasureRequest(landing_id, user, reason))
        if not dry_run:
            forget(store, settings, affected, progress)
    if as_json:
        from iosig.cli.documents import ForgettingDocument

        show_json(
            ForgettingDocument(
                landings=dict(affected.landings),
                releases=[*affected.releases],
                is_done=not dry_run,
                not_erased=not_erased(store),
            )
        )
    else:
        _show(affected, not_erased(store), is_done=not dry_run)
    return 0


def _show(affected: AffectedData, not_erased: list[str], *, is_done: bool) -> None:
    """Print the affected releases and landings, and the copies that are not erased."""
    from iosig.cli.printing import say
    from iosig.reports.texts import format_count

    counts = f"{format_count(len(affected.landings), 'landing')} and {format_count(len(affected.releases), 'release')}"
    outcome = "replaced by versions without this data; the old files are deleted"
    say(f"{counts} {outcome}." if is_done else f"{counts} would be replaced by versions without this data.")
    for release_id in affected.releases:
        click.echo(f"  {release_id}")
    say(f"Not erased (outside the warehouse): {'; '.join(not_erased)}.")
