"""`iosig releases`, `iosig rollback` and `iosig diff`: list, roll back and compare releases."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from iosig.cli.completion import quietly, releases, tables
from iosig.cli.options import DAY, GlobalOptions, json_option, strict_option
from iosig.warehouse.errors import UsageError, meant
from iosig.warehouse.store.store import Store

if TYPE_CHECKING:
    import polars as pl

_DIFFERENCES = ("table", "rows before", "added", "removed", "changed")
#: maximum number of signatures printed; JSON has all
_TOP = 30


@click.group("releases", invoke_without_command=True)
@json_option
@click.pass_context
def releases_command(context: click.Context, as_json: bool) -> int:
    """List the releases, the newest last; readers get the last one.

    If `keep_releases` is set, the oldest ones expire: their rows stay listed, their files are deleted.
    """
    from iosig.cli.printing import say, show, show_json
    from iosig.warehouse.releases import expiring, holds
    from iosig.warehouse.releases.releases import find_redirects_to, history, read_expired, to_records

    if context.invoked_subcommand:
        return 0
    store: Store = context.obj.store
    releases, pins, expired = history(store), expiring.pins(store), read_expired(store)
    replaced = {release.release_id: list(find_redirects_to(store, release.release_id)) for release in releases}
    if as_json:
        from iosig.cli.documents import ReleasesDocument

        retention = (
            {"expired_at": expired.get(name), "is_pinned": name in pins, "replaced": replaced_ids}
            for name, replaced_ids in replaced.items()
        )
        release_rows = [
            release | fields for release, fields in zip(to_records(store, releases), retention, strict=True)
        ]
        show_json(ReleasesDocument(releases=release_rows, rollback=holds.in_force(store)))
        return 0
    rows = [
        (
            release.release_id,
            release.created_at[:19],
            release.kind,
            release.newest_data_on,
            release.parent_release_id,
            len(release.dates),
            release.input_count,
            release.verdict,
            "; ".join(
                _describe_retention(release.release_id, pins, expired)
                + [f"for {old}" for old in replaced[release.release_id]]
            ),
        )
        for release in releases
    ]
    columns = ("release", "created (UTC)", "kind", "newest data", "on top of", "days", "new inputs", "checks", "kept")
    # the last column is empty in most warehouses
    width = len(columns) if pins or expired or any(replaced.values()) else len(columns) - 1
    # drop the time and the kind first, because the id contains them
    drop_order = ("created (UTC)", "kind", "new inputs", "on top of", "days")
    show(f"Releases in {store.name}", columns[:width], [row[:width] for row in rows], last=drop_order)
    if hold := holds.in_force(store):
        say(hold.sentence, fg="yellow")
    return 0


def _describe_retention(release_id: str, pins: dict[str, str | None], expired: dict[str, str]) -> list[str]:
    if release_id in expired:
        return [f"expired {expired[release_id][:10]}"]
    if release_id not in pins:
        return []
    until = pins[release_id]
    return [f"pinned until {until}" if until else "pinned"]


@releases_command.command("pin")
@click.argument("release_id", shell_complete=quietly(releases))
@click.option("--until", type=DAY, metavar="DATE", help="Last day on which the release is kept.")
@click.pass_obj
def pin_command(warehouse: GlobalOptions, release_id: str, until: datetime | None) -> int:
    """Keep a release regardless of the number of newer ones."""
    from iosig.warehouse.releases import expiring
    from iosig.warehouse.store.store import lock_warehouse

    with lock_warehouse(warehouse.store):
        release = expiring.pin(warehouse.store, release_id, until.date() if until else None)
    click.echo(f"{release.release_id} is kept{f' until {until.date()}' if until else ''}.")
    return 0


@releases_command.command("unpin")
@click.argument("release_id", shell_complete=quietly(releases))
@click.pass_obj
def unpin_command(warehouse: GlobalOptions, release_id: str) -> int:
    """Unpin a release, so that it expires according to the settings."""
    from iosig.warehouse.releases import expiring
    from iosig.warehouse.store.store import lock_warehouse

    with lock_warehouse(warehouse.store):
        release = expiring.unpin(warehouse.store, release_id)
    click.echo(f"{release.release_id} is no longer pinned. The retention settings apply.")
    return 0


@click.command("rollback")
@click.argument("release_id", required=False, shell_complete=quietly(releases))
@click.option(
    "--exclude-landing",
    "landing_ids",
    metavar="ID",
    multiple=True,
    help="Exclude this landing from later runs, instead of all landings of the releases rolled back. Repeatable.",
)
@click.option(
    "--exclude-table",
    "table_names",
    metavar="NAME",
    multiple=True,
    shell_complete=quietly(tables),
    help="Keep this table as in RELEASE_ID in later runs. Repeatable.",
)
@click.option("--end", "is_end", is_flag=True, help="End the rollback in force: the next run publishes all landings.")
@strict_option
@click.pass_obj
def rollback_command(
    warehouse: GlobalOptions,
    release_id: str | None,
    landing_ids: tuple[str, ...],
    table_names: tuple[str, ...],
    is_end: bool,
) -> int:
    """Make an earlier release the current one, and keep later runs from publishing what was rolled back.

    Nothing is deleted. The rollback stays in force until `--end`: runs exclude the landings of the releases that were
    rolled back, and refuse settings other than those of RELEASE_ID. With --exclude-landing or --exclude-table, runs
    exclude only the named landings and tables. `iosig status` and `iosig releases` show a rollback in force.
    """
    from iosig.cli.printing import say
    from iosig.expectations import docs
    from iosig.warehouse.releases import holds
    from iosig.warehouse.store.store import lock_warehouse

    store = warehouse.store
    if is_end:
        if release_id or landing_ids or table_names:
            raise UsageError("--end cannot be combined with a release or another option.")
        with lock_warehouse(store):
            hold = holds.end(store)
        say(f"The rollback to {hold.target_id} has ended. `iosig run` publishes the excluded landings.")
        return 0
    if release_id is None:
        raise UsageError("Name a release to roll back to (`iosig releases` lists them), or pass --end.")
    with lock_warehouse(store):
        release, hold = holds.roll_back(store, release_id, landing_ids, table_names)
        docs.write_release_docs(store, release)
    say(f"{release.release_id} is now the current release, with the tables of {hold.target_id}.")
    say(hold.sentence)
    return 0


@click.command("diff")
@click.argument("before", shell_complete=quietly(releases))
@click.argument("after", shell_complete=quietly(releases))
@click.option("--method", help="Compare the signatures of this method; else each application's default.")
@json_option
@click.pass_obj
def diff_command(warehouse: GlobalOptions, before: str, after: str, method: str | None, as_json: bool) -> int:
    """Compare two releases: rows added, removed and changed in every table that differs, and changed signatures.

    Signatures are listed with the largest change first: similarity of the two curves, difference in volume, and numbers
    of added and removed bursts. In JSON they are the `changes` of the table `signatures`.
    """
    from iosig.answers.signatures.changes import signature_changes
    from iosig.cli.printing import show, show_json
    from iosig.warehouse.releases.reading import count_differences
    from iosig.warehouse.releases.releases import find

    sides = find(warehouse.store, before), find(warehouse.store, after)
    _require_method(method)
    differences = count_differences(warehouse.store, *sides)
    changes = signature_changes(warehouse.store, *sides, method)
    if as_json:
        from iosig.cli.documents import DifferenceDocument

        keys = ("table", "rows_before", "added", "removed", "changed")
        tables: list[dict[str, Any]] = [dict(zip(keys, row, strict=True)) for row in differences]
        for table in tables:
            if table["table"] == "signatures":
                table["changes"] = changes.to_dicts()
        show_json(DifferenceDocument(before=sides[0].release_id, after=sides[1].release_id, tables=tables))
    elif differences:
        show(f"From {sides[0].release_id} to {sides[1].release_id}", _DIFFERENCES, differences)
        _show_changes(changes)
    else:
        click.echo("The two releases are identical.")
    return 0


def _require_method(method: str | None) -> None:
    from iosig.warehouse.contracts import table

    choices = table("signatures").column("method").choices
    if method is not None and method not in choices:
        raise UsageError(
            f"Unknown signature method {method!r}. Available: {', '.join(choices)}.{meant(method, choices)}"
        )


def _show_changes(changes: pl.DataFrame) -> None:
    """Print the largest changes of signatures, up to `_TOP`."""
    from iosig.cli.printing import bytes_text, format_title, show

    if changes.is_empty():
        click.echo("No signature differs.")
        return
    rows = [
        (
            row["application_id"],
            row["filesystem"],
            row["direction"],
            _arrow(row["method_before"], row["method"]),
            row["status"],
            None if row["change_correlation"] is None else f"{row['change_correlation']:.3f}",
            _arrow(
                *(bytes_text(row[name]) for name in ("volume_bytes_before", "volume_bytes") if row[name] is not None)
            ),
            None if row["relative_volume_change"] is None else f"{row['relative_volume_change']:+.1%}",
            row["added_burst_count"],
            row["removed_burst_count"],
        )
        for row in changes.head(_TOP).iter_rows(named=True)
    ]
    columns = (
        "application", "file system", "direction", "method", "signature", "correlation", "volume", "change",
        "bursts appeared", "vanished",
    )  # fmt: skip
    show(
        format_title("Signatures that differ", len(rows), changes.height),
        columns,
        rows,
        last=("method", "bursts appeared", "vanished", "file system", "correlation"),
    )


def _arrow(before: str | None, after: str | None = None) -> str:
    """Format an old and a new value, once if they are equal."""
    return " → ".join(dict.fromkeys(text for text in (before, after) if text is not None))
