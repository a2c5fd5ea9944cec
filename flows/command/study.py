"""`iosig study`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from flows.study.running import Results, Told


@click.command("study")
@click.argument("subject", type=click.Choice(["periods"]), metavar="periods")
@click.option(
    "--traces", default=100, show_default=True, type=click.IntRange(min=1), help="Traces of each of the 50 settings."
)
@click.option(
    "--draws", default=1000, show_default=True, type=click.IntRange(min=1), help="Signals of each of the 10 noises."
)
@click.option("--seed", default=0, show_default=True, type=click.IntRange(min=0), help="What all is drawn from.")
@click.option(
    "--workers", type=click.IntRange(min=1), help="Processes that work on it; as many as there are cores if not given."
)
@click.option(
    "--into",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write a page, periods-study.md, and its figures into this folder.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def study_command(
    subject: str, traces: int, draws: int, seed: int, workers: int | None, into: Path | None, as_json: bool
) -> int:
    """Measure how well the searches for periods do, on traces whose period is known and on noise.

    The traces are those of FTIO's evaluation (IPDPS'24, section III-A): applications of 20 iterations, with compute
    phases of several lengths, processes that begin late, compute phases that differ, and noise. A method should find
    their period, and none in white noise, red noise and bursts at random times. The same seed gives the same results.
    """
    from flows.command.printing import show_json
    from flows.study import page
    from flows.study.running import StudyParams, study

    with _progress(f"Study of {subject}") as told:
        results = study(StudyParams(traces, draws, seed, workers), told=told)
    if into is not None:
        click.echo(f"Page: {page.write(results, into)}", err=True)
    if as_json:
        show_json(_document(results))
    else:
        _show(results)
    return 0


@contextmanager
def _progress(name: str) -> Iterator[Told]:
    """Show on stderr how much of the work is done."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task(name, total=None)
        yield lambda done, count: progress.update(task, completed=done, total=count)


def _document(results: Results) -> dict[str, object]:
    from flows.study.summary import alarm_summary, error_summary, statements

    params = results.params
    names = [method.name for method in results.methods]
    return {
        "trace_count": params.trace_count,
        "draw_count": params.draw_count,
        "seed": params.seed,
        "methods": {method.name: method.doc for method in results.methods},
        "highest_alarm_ratios": alarm_summary(results).to_dicts(),
        "errors": error_summary(results).to_dicts(),
        "statements": [
            {"of": words, "paper": stated, "found": dict(zip(names, found, strict=True))}
            for words, stated, found in statements(results)
        ],
        "alarms": results.alarms.to_dicts(),
    }


def _show(results: Results) -> None:
    """Print tables that fit a terminal."""
    from flows.command.printing import show
    from flows.study.page import digits
    from flows.study.summary import GROUPS, KINDS, alarm_summary, error_summary

    rows = [(row["method"], *(digits(row[kind]) for kind in KINDS)) for row in alarm_summary(results).to_dicts()]
    show("False alarms [%]: the highest rate of each kind of noise", ("method", *KINDS), rows)
    found = {(row["method"], row["group"]): row for row in error_summary(results).to_dicts()}
    names, columns = [method.name for method in results.methods], ("method", *GROUPS.values())
    errors, shares = [], []
    for name in names:
        cells = [found[name, group] for group in GROUPS]
        errors.append((name, *(f"{digits(cell['mean_error'])}, {digits(cell['median_error'])}" for cell in cells)))
        shares.append((name, *(digits(cell["found_ratio"]) for cell in cells)))
    show("Detection errors [%], mean and median, where a period was found", columns, errors)
    show("Traces in which a period was found [%]", columns, shares)
