"""`iosig report`: write a release as static HTML pages."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from iosig.cli.options import GlobalOptions, json_option, release_option, select_release


@click.command("report")
@click.option(
    "--output",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    required=True,
    help="Folder of the pages: new, empty, or that of an earlier report.",
)
@release_option
@click.option("--hide-users", "is_hiding", is_flag=True, help="Show pseudonyms instead of users and accounts.")
@json_option
@click.pass_obj
def report_command(
    warehouse: GlobalOptions, folder: Path, release_id: str | None, is_hiding: bool, as_json: bool
) -> int:
    """Write a release as static HTML pages, which open from a file or a web server.

    Each release gets a folder, next to `latest/`. Only changed pages are written, and expired releases are removed. The
    pages load no external resources.
    """
    from iosig.answers.report.build import report
    from iosig.answers.report.pseudonyms import create_pseudonymizer
    from iosig.cli.printing import bytes_text, show_json
    from iosig.flows.lineage import table_rows

    store = warehouse.store
    release = select_release(store, release_id)
    settings = warehouse.settings()
    hider = create_pseudonymizer(store, settings) if is_hiding else None
    written = report(store, release, folder, table_rows, hider, settings)
    if as_json:
        from iosig.cli.documents import ReportDocument

        show_json(ReportDocument(**asdict(written) | {"release_id": release.release_id, "page": str(written.page)}))
        return 0
    click.echo(f"{written.page}: release {release.release_id}")
    click.echo(f"{written.file_count:,} files, {bytes_text(written.byte_count)}; {written.new_count:,} written")
    for removed_id in written.removed_release_ids:
        click.echo(f"{removed_id}: pages deleted, because the release expired or named users")
    return 0
