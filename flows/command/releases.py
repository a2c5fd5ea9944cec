"""`iosig releases`, `iosig rollback` and `iosig diff`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from warehouse.store import Store


@click.command("releases")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def releases_command(obj: tuple[Store, Path | None], as_json: bool) -> int:
    """List the releases, the newest last; the last one is what readers get."""
    from flows.command.printing import show, show_json
    from warehouse.releases import history

    found = history(obj[0])
    if as_json:
        show_json([asdict(release) for release in found])
        return 0
    rows = [
        (
            release.release_id,
            release.created_at[:19],
            release.kind,
            release.parent_release_id,
            len(release.dates),
            len(release.inputs),
            release.verdict,
        )
        for release in found
    ]
    show(
        f"Releases in {obj[0].root}",
        ("release", "created (UTC)", "kind", "on top of", "days", "new inputs", "checks"),
        rows,
    )
    return 0


@click.command("rollback")
@click.argument("release_id")
@click.pass_obj
def rollback_command(obj: tuple[Store, Path | None], release_id: str) -> int:
    """Make an earlier release the current one again; nothing is deleted."""
    from warehouse.releases import rollback
    from warehouse.store import locked

    with locked(obj[0]):
        release = rollback(obj[0], release_id)
    click.echo(f"{release.release_id} is now the current release, with the tables of {release.parent_release_id}.")
    return 0


@click.command("diff")
@click.argument("before")
@click.argument("after")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def diff_command(obj: tuple[Store, Path | None], before: str, after: str, as_json: bool) -> int:
    """Compare two releases: rows added, removed and changed in every table that differs."""
    from flows.command.printing import show, show_json
    from warehouse.reading import count_differences
    from warehouse.releases import find

    sides = find(obj[0], before), find(obj[0], after)
    found = count_differences(obj[0], *sides)
    names = ("table", "rows before", "added", "removed", "changed")
    if as_json:
        show_json([dict(zip(names, row, strict=True)) for row in found])
    elif found:
        show(f"From {sides[0].release_id} to {sides[1].release_id}", names, found)
    else:
        click.echo("The two releases hold the same tables.")
    return 0
