"""`iosig population`: summarize the I/O of all runs."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from iosig.cli.options import (
    DAY,
    GlobalOptions,
    answer_options,
    draw_into,
    select_release,
)

if TYPE_CHECKING:
    from iosig.answers.population.query import By, Population
    from iosig.reports.style import Style

_SHORT = {"NO_USAGE": "NO USE"}


@click.command("population")
@click.option("--since", type=DAY, metavar="DAY", help="Runs that ended on this UTC day or later.")
@click.option("--until", type=DAY, metavar="DAY", help="Runs that ended on this UTC day or earlier.")
@click.option(
    "--by",
    type=click.Choice(["application", "user", "account", "duration"]),
    default="application",
    show_default=True,
    help="Grouping of the runs; duration: the wall time, in four ranges.",
)
@click.option(
    "--top", "max_count", default=10, show_default=True, type=click.IntRange(min=1), help="Maximum number of groups."
)
@answer_options
@click.pass_obj
def population_command(
    warehouse: GlobalOptions,
    since: datetime | None,
    until: datetime | None,
    by: By,
    max_count: int,
    release_id: str | None,
    as_json: bool,
    plot: Path | None,
    style: Style,
) -> int:
    """Summarize the I/O of all runs: classes, periods and volumes, and the share that is known exactly.

    Follows the tables and figures of PEARC'18. A run counts once for each file system. As in the paper, runs on shared
    nodes are left out if jobs.excludes_shared_nodes is set.
    """
    from iosig.answers.population.query import Query, read_population

    first, last = (None if at is None else at.date() for at in (since, until))
    query = Query(first, last, by, warehouse.settings().jobs.excludes_shared_nodes)
    release = select_release(warehouse.store, release_id)
    population = read_population(warehouse.store, release, query)
    if plot is not None:
        from iosig.answers.population.figure import build_view
        from iosig.reports.population import draw

        draw_into(plot, draw, build_view(population, release.release_id), style)
    if as_json:
        from iosig.answers.population.format import build_document
        from iosig.cli.printing import show_json

        show_json(build_document(population, max_count, release.release_id))
    else:
        _show(population, max_count)
    return 0


def _show(population: Population, max_count: int) -> None:
    from iosig.answers.population.format import LABELS, format_labels, format_shares
    from iosig.cli.printing import say, show
    from iosig.reports.texts import format_count

    say(f"{format_count(population.run_count, 'run')}, {population.node_hours:,.0f} node hours")
    names = [_SHORT.get(name, name) for name in LABELS]
    show("Runs by class of their writes (rows) and reads", ("write", *names, "none"), format_labels(population))
    columns = ("% runs", *names, "periodic")
    show(
        "Shares of classes; periodic: share of even I/O (UNIFORM, OTHER)",
        columns,
        format_shares(population, "run_ratio"),
    )
    show("", ("% bytes", *names, "periodic"), format_shares(population, "bytes_ratio"))
    _show_groups(population, max_count)
    _show_witnesses(population)
    _show_repeats(population)
    _say_bases(population)


def _show_repeats(told: Population) -> None:
    from iosig.answers.population.format import summarize_repeats
    from iosig.cli.printing import show
    from iosig.reports.texts import shorten

    rows = [
        (shorten(user, 14), nodes, runs, configurations, shorten(name, 20), most)
        for user, nodes, runs, configurations, name, most in summarize_repeats(told)
    ]
    if rows:
        columns = ("user", "nodes", "runs", "configurations", "most frequent", "its runs")
        show("Users with the largest jobs, and their runs by identical configuration", columns, rows)


def _say_bases(population: Population) -> None:
    from iosig.answers.population.format import measure_agreement
    from iosig.cli.printing import say

    counts = dict(population.bases().iter_rows())
    inferred = counts.pop("inferred", 0)
    exact = ", ".join(f"{name} {count:,}" for name, count in counts.items())
    listed = f" ({exact})" if exact else ""
    say(f"Classes: {sum(counts.values()):,} exact{listed}, {inferred:,} inferred from signatures.")
    missing = [f"{count:,} {outcome}" for outcome, count in population.count_without_class().iter_rows()]
    if missing:
        say(f"No class: {', '.join(missing)}.")
    compared = measure_agreement(population)
    if compared is not None:
        say(f"Inferred and exact classes agree in {compared[1]:.0%} of {compared[0]:,} runs that have both.")


def _show_groups(population: Population, max_count: int) -> None:
    from iosig.cli.printing import bytes_text, format_title, show
    from iosig.reports.texts import shorten

    groups = population.groups()
    rows: list[tuple[Any, ...]] = [
        (
            shorten(row["name"] or "unknown", 17),
            row["run_count"],
            row["node_hours"],
            bytes_text(row["bytes"]),
            row["label"],
            "-" if row["stability"] is None else f"{row['stability']:.0%}",
            f"{row['periodic_ratio']:.0%}",
            row["median_period_s"],
        )
        for row in groups.head(max_count).to_dicts()
    ]
    by = format_title(f"By {population.query.by}", len(rows), groups.height)
    columns = (population.query.by, "runs", "node h", "bytes", "class", "stable", "period.", "period_s")
    show(f"{by}; class of the direction with more bytes", columns, rows)


def _show_witnesses(population: Population) -> None:
    from iosig.cli.printing import bytes_text, show

    sources = population.reference_sources()
    runs, measured = int(sources["run_count"].sum()), max(population.measured_bytes, float(sources["bytes"].sum()))
    words = {"exact": "servers counted it", "trace": "a trace", "signature": "its signature", "none": "none yet"}
    rows = [
        (
            words[name],
            count,
            f"{count / runs:.0%}",
            bytes_text(byte_count),
            f"{byte_count / measured:.0%}" if measured else "-",
        )
        for name, count, byte_count in sources.iter_rows()
    ]
    unattributed_bytes = measured - float(sources["bytes"].sum())
    if unattributed_bytes > 0:
        rows.append(("unattributed", None, "-", bytes_text(unattributed_bytes), f"{unattributed_bytes / measured:.0%}"))
    show("Sources of the bytes of runs", ("by", "runs", "of runs", "bytes", "of bytes"), rows)
