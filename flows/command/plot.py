"""`iosig plot`."""

from __future__ import annotations

from pathlib import Path

import click

from flows.command.options import release_option
from warehouse.errors import UsageError
from warehouse.store.store import Store

_KINDS = (".png", ".svg")


@click.group("plot")
def plot_command() -> None:
    """Draw what a release holds, as a PNG or an SVG."""


@plot_command.command("signature")
@click.argument("application")
@click.option("--filesystem", help="The file system, where the application has used several.")
@click.option("--direction", type=click.Choice(["write", "read"]), help="Else the one in which it moves most.")
@click.option("--method", help="How the signature is made; else the default method's.")
@click.option("--with", "overlaid", metavar="METHOD", multiple=True, help="Draw this method's signature over it.")
@release_option
@click.option(
    "--to",
    "target",
    type=click.Path(path_type=Path, dir_okay=False),
    default=Path("signature.png"),
    show_default=True,
    help="The file to write: .png or .svg.",
)
@click.pass_obj
def signature_command(
    obj: tuple[Store, Path | None],
    application: str,
    filesystem: str | None,
    direction: str | None,
    method: str | None,
    overlaid: tuple[str, ...],
    release_id: str | None,
    target: Path,
) -> int:
    """Draw an application's signature: its samples above; the signature, its band and its bursts below.

    APPLICATION is an id as `iosig sql "from applications"` lists them (user/application/node_count), or a part of one
    that means no other.
    """
    kind = target.suffix.lower()
    if kind not in _KINDS:
        raise UsageError(f"{target.name}: give the picture a name that ends in {' or '.join(_KINDS)}.")

    from flows.command.printing import printable
    from flows.signatures.view import Asked, view_of
    from reports.signatures import draw
    from warehouse.releases.releases import find

    asked = Asked(application, filesystem, direction, method, overlaid)
    view = view_of(obj[0], find(obj[0], release_id), asked)
    draw(view, target, kind.removeprefix("."))
    of = f"{view.direction} of {view.application_id} on {view.filesystem} ({view.main.method})"
    click.echo(f"{target}: {printable(of)}")
    click.echo(printable(view.verdict))
    return 0
