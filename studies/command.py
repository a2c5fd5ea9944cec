"""Define `iosig study`, with one subcommand per discovered study."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from iosig.cli.options import STYLE_OPTION, WIDE_OPTION
from iosig.reports.style import Style
from iosig.studies.study import Study, find_studies


@click.group("study")
def study_command() -> None:
    """Evaluate the methods on data with known ground truth. The same seed gives the same results."""


def _command(study: Study) -> click.Command:
    """Build the click command that runs a study and prints or writes its results."""

    def callback(output: Path | None, as_json: bool, style: Style, **arguments: Any) -> int:
        return _run(study, arguments, output, style, as_json=as_json)

    written = click.Option(
        ["--output"],
        type=click.Path(path_type=Path, file_okay=False),
        help=f"Write a page, {study.page_name}, and its {study.drawn} into this folder"
        f"{'; with --part, only its measures' if study.part else ''}.",
    )
    style = click.Option(["--style"], **STYLE_OPTION)
    as_json = click.Option(["--json", "as_json"], is_flag=True, help="Print JSON.")
    options: list[click.Parameter] = [*study.options, written, style, click.Option(["--wide"], **WIDE_OPTION), as_json]
    return click.Command(study.name, params=options, callback=callback, help=study.doc, short_help=study.summary)


def _run(study: Study, arguments: dict[str, Any], output: Path | None, style: Style, *, as_json: bool) -> int:
    from iosig.cli.printing import progress_bar, show, show_json

    is_partial = bool(study.part and arguments[study.part])
    params = study.params(arguments)
    with progress_bar(f"Study of {study.name}") as report_progress:
        results = study.running.study(params, report_progress=report_progress)
    if output is not None and is_partial:
        click.echo(f"Measures, without a page: {study.write_measures(params, results, output)}", err=True)
    elif output is not None:
        click.echo(f"Page: {study.write(params, results, output, style)}", err=True)
    if as_json:
        from iosig.cli.documents import StudyDocument

        show_json(StudyDocument(study=study.name, results=study.document(results)))
        return 0
    for title, table in study.tables(results):
        show(title, table.columns, table.rows)
    return 0


for _study in find_studies():
    study_command.add_command(_command(_study))
