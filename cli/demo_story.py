"""Print the demo's summary on one screen of 80 columns: planted facts, results, and commands to try next."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from iosig.cli.hints import command, for_warehouse
from iosig.cli.printing import bytes_text, show
from iosig.flows.demo.simulated import FILESYSTEM
from iosig.reports.texts import format_count
from iosig.warehouse.store.store import Store

if TYPE_CHECKING:
    import polars as pl

    from iosig.cli.demo_planted import PlantedFact
    from iosig.warehouse.releases.releases import Release

_DAY = timedelta(days=1)
#: signatures with a lower expected correlation are named as unreliable
_MIN_TRUST = 0.5


@dataclass(frozen=True, slots=True)
class Story:
    """Contents of the demo's summary screen.

    releases: one per night. planted: planted facts with their detections. signatures, volumes: compared with the truth.
    traced_count: number of real Darshan logs that landed. last_day: start of the last day.
    """

    releases: Sequence[Release]
    planted: Sequence[PlantedFact]
    signatures: pl.DataFrame
    volumes: pl.DataFrame
    traced_count: int
    last_day: datetime


def tell(store: Store, story: Story, into: Path, executor: Executor) -> None:
    """Print the summary; an executor draws its two pictures into a folder."""
    _say(
        f"{format_count(len(story.releases), 'day')} of a simulated machine, processed in one nightly run per day: job "
        "log and storage polls every 2 s, with interfering jobs, failed runs, gaps and damaged files, and "
        f"{story.traced_count} real Darshan logs."
    )
    release = story.releases[-1]
    best = _best(story.signatures)
    until = story.last_day + _DAY
    writers = executor.submit(_who_wrote, store.root, release, FILESYSTEM, until, into / "who.png")
    drawn = executor.submit(_draw_signature, store.root, release, *best, into / "signature.png") if best else None
    _show_signatures(story.signatures)
    _tell_doubtful(story.signatures)
    click.echo("Planted anomalies, and results of the third night:")
    for fact in story.planted:
        click.echo(click.wrap_text(f"{'+' if fact.is_found else '-'} {fact.planted}", 80, "", "  "))
        click.echo(click.wrap_text(fact.found, 80, "    ", "    "))
    _tell_volumes(story.volumes)
    if names := writers.result():
        _say(f"Top writers on {FILESYSTEM} on the last day: {names}.")
    click.echo()
    _tell_releases(store, story.releases)
    if drawn is not None:
        drawn.result()
    _tell_where_to_look(store, story, best[0] if best else "NAME", into)


def _say(sentences: str) -> None:
    click.echo(click.wrap_text(sentences, 80))


def _show_signatures(signatures: pl.DataFrame) -> None:
    """Print the largest extracted signatures next to the true ones."""
    moved = signatures.filter(signatures["true_burst_count"] > 0).sort("traced_bytes", descending=True)
    rows = [
        (
            f"{row['application']} {row['direction']}s",
            bytes_text(row["volume_bytes"]),
            bytes_text(row["traced_bytes"]),
            f"{row['true_burst_count'] - row['missed_burst_count']} of {row['true_burst_count']}",
            row["false_burst_count"],
            None if row["expected_correlation"] is None else f"{row['expected_correlation']:.2f}",
        )
        for row in moved.iter_rows(named=True)
    ]
    columns = ("a run of", "found", "planted", "bursts found", "false", "expected correlation")
    show("Signatures: I/O of each application without interference", columns, rows)


def _tell_doubtful(signatures: pl.DataFrame) -> None:
    """Print the unreliable signatures, and the number of bursts of the runs that they miss."""
    parts = []
    doubtful = signatures.filter(
        (signatures["expected_correlation"] < _MIN_TRUST) & (signatures["true_burst_count"] > 0)
    )
    for row in doubtful.sort("expected_correlation").iter_rows(named=True):
        count = row["missing_burst_count"]
        missing_text = f" (misses {format_count(count, 'burst')})" if count else ""
        parts.append(f"{row['application']} {row['direction']}s{missing_text}")
    if parts:
        _say(f"Signatures with an expected correlation below {_MIN_TRUST} are unreliable: {', '.join(parts)}.")
        click.echo()


def _tell_releases(store: Store, releases: Sequence[Release]) -> None:
    """Print each night's release, and the warnings of the last one's checks."""
    from iosig.cli.summary import warnings
    from iosig.warehouse.releases.reading import open_release

    for release in releases:
        _say(f"Release {release.release_id}: {release.verdict}")
    with open_release(store, releases[-1], "quality rejects") as connection:
        happened = [sentence for _, sentence, _ in warnings(connection)]
        (refused,) = connection.sql("select count(*) from rejects").fetchall()[0]
    for sentence in happened:
        _say(f"  {sentence}")
    _say(f"  {format_count(refused, 'damaged input')} refused, with line, reason and remedy in `rejects`.")


def _tell_volumes(volumes: pl.DataFrame) -> None:
    """Print the bytes that servers counted for runs, and the file system's traffic over the same time."""
    if volumes.is_empty():
        return
    row = volumes.sort("exact_bytes", descending=True).row(0, named=True)
    runs, exact = int(volumes["run_count"].sum()), int(volumes["true_run_count"].sum())
    _say(
        f"Servers that count by job: {exact} of {runs} volumes are exact. A run of {row['application']} "
        f"{row['direction']}s {bytes_text(row['exact_bytes'])}, while the file system moves "
        f"{bytes_text(row['cut_bytes'])}."
    )


def _best(signatures: pl.DataFrame) -> tuple[str, str] | None:
    """Return the application and direction of the signature to look at first: all bursts found, highest correlation."""
    several = signatures.filter(
        (signatures["burst_count"] > 2)
        & (signatures["missed_burst_count"] + signatures["false_burst_count"] == 0)
        & signatures["expected_correlation"].is_not_null()
    )
    if several.is_empty():
        return None
    best = several.sort("expected_correlation", descending=True).row(0, named=True)
    return best["application"], best["direction"]


# ---- the pictures, drawn in separate processes

#: modules that these processes import
DRAWING_MODULES = ("iosig.reports.signatures", "iosig.answers.attribution.figure", "matplotlib.backends.backend_agg")


def _draw_signature(root: Path, release: Release, application: str, direction: str, target: Path) -> None:
    from iosig.answers.signatures.view import Query, build_view
    from iosig.reports.signatures import draw

    draw(build_view(Store(root), release, Query(application, direction=direction))).write(target)


def _who_wrote(root: Path, release: Release, filesystem: str, last_end: datetime, target: Path) -> str:
    """Draw the traffic of the last whole day by job, and return the top writer; empty if no writer is known."""
    from iosig.answers.attribution.figure import build_view
    from iosig.answers.attribution.query import TABLES, Query, who
    from iosig.reports.attribution import draw
    from iosig.warehouse.errors import NothingToDo
    from iosig.warehouse.releases.reading import open_release

    try:
        with open_release(Store(root), release, TABLES) as connection:
            attribution = who(connection, Query.parse(filesystem, None, last_end - _DAY, last_end, "write"))
    except NothingToDo:
        return ""
    first = attribution.applications.head(3).iter_rows(named=True)
    names = ", ".join(
        f"{row['application']} ({row['attributed_bytes'] / attribution.measured_bytes:.0%})" for row in first
    )
    if names:
        draw(build_view(attribution)).write(target)
    return names


def _tell_where_to_look(store: Store, story: Story, name: str, into: Path) -> None:
    """Print the paths of the pictures, and commands that show more."""
    slowed = next((fact.planted.split()[2] for fact in story.planted if fact.kind == "slowdown"), "JOBID")
    traced = next((fact.planted.split()[1] for fact in story.planted if fact.kind == "trace"), "JOBID")
    pictures = [shlex.quote(str(into / name)) for name in ("signature.png", "who.png") if (into / name).exists()]
    click.echo(f"\nLook at {' and '.join(pictures)}; then:")
    click.echo(f"  export IOSIG_WAREHOUSE={shlex.quote(str(store.root))}")
    commands = (
        f"report --output {shlex.quote(str(into / 'report'))}",
        f"job {slowed}",
        f"job {traced}",
        f"slowdowns {FILESYSTEM} --since {story.last_day:%Y-%m-%d}",
        f"plot signature {name} --output {name}.png",
    )
    with for_warehouse(None):
        for arguments in commands:
            click.echo(f"  {command(arguments)}")
