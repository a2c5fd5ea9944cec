"""`iosig verify`, `repair`, `maintain` and `upgrade`: verify, repair, maintain and upgrade a warehouse."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from iosig.cli.options import GlobalOptions, json_option, strict_option
from iosig.warehouse.errors import MachineFault, NothingToDo, UsageError
from iosig.warehouse.store.store import Store

if TYPE_CHECKING:
    pass

#: maximum number of damaged files printed; JSON has all
_MAX_PRINTED_FILES = 50


@click.command("verify")
@click.option("--all", "is_all", is_flag=True, help="Verify all releases, not only the current one.")
@json_option
@click.pass_obj
def verify_command(warehouse: GlobalOptions, is_all: bool, as_json: bool) -> int:
    """Verify all files of a release and all landings against their checksums, and list damaged files.

    Covers landed and released files, the metadata that name them, manifests, the catalogue and derived files.
    """
    from iosig.cli.printing import format_title, progress_bar, show, show_json
    from iosig.warehouse.releases.verifying import verify
    from iosig.warehouse.store.form import is_damaged, require_form

    store = _existing(warehouse.store)
    if not is_damaged(store):
        require_form(store)
    with progress_bar("Reading") as progress:
        damages = verify(store, is_all=is_all, progress=progress)
    if as_json:
        from iosig.cli.documents import DamagesDocument

        show_json(DamagesDocument(damages=damages))
    elif not damages:
        click.echo(f"No damaged files in {store.name}.")
    else:
        rows = [(damage.path, damage.problem, damage.remedy) for damage in damages[:_MAX_PRINTED_FILES]]
        show(format_title("Damaged", len(rows), len(damages)), ("file", "it", "remedy"), rows)
    return MachineFault.exit_code if damages else 0


@click.command("repair")
@json_option
@strict_option
@click.pass_obj
def repair_command(warehouse: GlobalOptions, as_json: bool) -> int:
    """Repair damaged files, and update the metadata of a moved warehouse to its folder.

    If metadata are damaged, the newest intact release becomes the current one; the next run recomputes the later ones,
    and days with damaged files. Damaged landings are set aside, so that their inputs can be landed again.

    iosig finds the files of a moved or copied warehouse without repair; other readers of Iceberg need metadata that
    name its folder. If the settings name another catalogue than the warehouse has, its tables are registered there.
    """
    from iosig.cli.printing import progress_bar, show, show_json
    from iosig.warehouse.releases.catalogue_choice import take_over
    from iosig.warehouse.releases.repairing import RepairedFile, mend_state, repair
    from iosig.warehouse.store.store import lock_warehouse

    store = _existing(warehouse.store)
    server = warehouse.settings().catalogue.server()
    with lock_warehouse(store), progress_bar("Reading") as progress:
        mended = mend_state(store)
        if server is not None and take_over(store, server):
            mended.append(RepairedFile("catalogue", f"is now {server}", ""))
        mended += repair(store, progress)
    if as_json:
        from iosig.cli.documents import RepairsDocument

        show_json(RepairsDocument(repairs=mended))
    elif not mended:
        raise NothingToDo(f"No damaged files in {store.name}.")
    else:
        show("Repaired", ("file", "it", "remedy afterwards"), [(m.path, m.outcome, m.remedy) for m in mended])
    return 0


@click.command("maintain")
@click.option(
    "--keep",
    "keep_count",
    type=click.IntRange(min=1),
    help="Number of releases to keep. Overrides the settings.",
)
@click.option("--now", "is_now", is_flag=True, help="Skip the grace period of one day, except for releases being read.")
@json_option
@strict_option
@click.pass_obj
def maintain_command(warehouse: GlobalOptions, keep_count: int | None, is_now: bool, as_json: bool) -> int:
    """Expire old releases, delete their files, and apply the retention policy of raw polls.

    The newest `keep_releases` releases (a setting) and pinned ones are kept. Files of expired releases stay for one
    more day, for current readers. If `keep_landed_days` is set, older polls that are part of every kept release are
    deleted; their days can then no longer be recomputed. The night runs the same maintenance.
    """
    from iosig.cli.printing import bytes_text, say, show_json
    from iosig.flows.steps.release import maintain
    from iosig.reports.texts import format_count
    from iosig.warehouse.releases.expiring import GRACE_S
    from iosig.warehouse.store.form import require_form
    from iosig.warehouse.store.store import lock_warehouse

    store = _existing(warehouse.store)
    require_form(store)
    settings = warehouse.settings()
    with lock_warehouse(store):
        freed = maintain(store, settings, keep_releases=keep_count, grace_s=0.0 if is_now else GRACE_S)
    released, landed = freed.released, freed.landed
    if as_json:
        from iosig.cli.documents import MaintenanceDocument

        raw = {"landing_count": landed.landing_count, "byte_count": landed.byte_count, "closed_days": landed.days}
        show_json(MaintenanceDocument(**asdict(released), landed=raw))
    elif not freed.lines():
        is_all = keep_count is None and settings.storage.keep_releases is None
        reason = "all releases are kept (`keep_releases` is not set)" if is_all else "nothing to remove"
        raise NothingToDo(f"{store.name}: {reason}.")
    else:
        say(
            f"Expired: {format_count(len(released.release_ids), 'release')}. Removed: "
            f"{format_count(released.file_count, 'file')} ({bytes_text(released.byte_count)})."
        )
        if landed.landing_count:
            say(
                f"Raw polls removed: {format_count(landed.landing_count, 'landing')} ({bytes_text(landed.byte_count)})."
                f" Closed, never computed again: {format_count(len(landed.days), 'day')}."
            )
    return 0


@click.command("upgrade")
@click.option("--check", "is_check", is_flag=True, help="Print the time and space needed, and change nothing.")
@strict_option
@click.pass_obj
def upgrade_command(warehouse: GlobalOptions, is_check: bool) -> int:
    """Convert a warehouse and a settings file of commit 18b5d00 to the names of this version.

    Releases keep their ids and verdicts. After an error, or if the upgrade is killed, the warehouse is unchanged. The
    settings file is rewritten, and the old one is saved as FILE.before-upgrade.
    """
    from iosig.cli.printing import bytes_text, progress_bar, say
    from iosig.settings.model import settings_file
    from iosig.settings.renaming import has_former_names, rename_settings
    from iosig.warehouse.releases.upgrading import needs, upgrade
    from iosig.warehouse.store.form import FORM
    from iosig.warehouse.store.store import lock_warehouse

    store = _existing(warehouse.store)
    settings = settings_file(warehouse.settings_path, store.root)
    is_renamed = settings is not None and has_former_names(settings)
    needed = needs(store)
    if needed is None and not is_renamed:
        raise NothingToDo(f"{store.name} has form {FORM} already.")
    if needed is not None:
        size = bytes_text(needed.written_bytes)
        say(f"Form {needed.form} to {FORM}: {needed.file_count:,} files ({size}) are rewritten.")
        say(f"This takes about {needed.duration_s:.0f} s and, temporarily, {size} of disk space.")
    if is_renamed:
        say(f"{settings}: settings are renamed.")
    if is_check:
        return 0
    if needed is not None:
        with lock_warehouse(store), progress_bar("Upgrading") as progress:
            upgrade(store, progress)
        click.echo(f"{store.name} has form {FORM}.")
    if settings is not None and is_renamed:
        click.echo(f"{settings} has the current names; the old file is {rename_settings(settings)}.")
    return 0


def _existing(store: Store) -> Store:
    if not store.exists:
        raise UsageError(f"There is no warehouse in {store.name}.")
    return store
