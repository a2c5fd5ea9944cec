"""`iosig plot`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from flows.command.completing import filesystems, quietly
from flows.command.options import application_argument, picture_path, release_option, style_option
from warehouse.store.store import Store

if TYPE_CHECKING:
    from reports.style import Style


@click.group("plot")
def plot_command() -> None:
    """Draw what a release holds, as a PNG or an SVG."""


@plot_command.command("signature")
@application_argument
@click.option(
    "--filesystem", shell_complete=quietly(filesystems), help="The file system, where the application has used several."
)
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
    callback=picture_path,
    help="The file to write: .png or .svg.",
)
@style_option
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
    style: Style,
) -> int:
    """Draw an application's signature: its samples above; the signature, its band and its bursts below.

    APPLICATION is an id as `iosig sql "from applications"` lists them (user/application/node_count), or a part of one
    that means no other.
    """
    from flows.command.printing import printable, say
    from flows.signatures.view import Asked, view_of
    from reports.signatures import draw
    from warehouse.releases.releases import find

    asked = Asked(application, filesystem, direction, method, overlaid)
    view = view_of(obj[0], find(obj[0], release_id), asked)
    draw(view, target, target.suffix[1:].lower(), style)
    of = f"{view.direction} of {view.application_id} on {view.filesystem} ({view.main.method})"
    say(f"{target}: {printable(of)}")
    say(printable(view.verdict))
    return 0
