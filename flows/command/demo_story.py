"""What the demo tells in one screen of 80 columns: what was made up, what was found of it, and how to go on."""

from __future__ import annotations

import shlex
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from flows import processes
from flows.command.hints import command
from flows.command.printing import bytes_text, show
from reports.texts import counted
from warehouse.store.store import Store

if TYPE_CHECKING:
    import polars as pl

    from warehouse.releases.releases import Release

_DAY = timedelta(days=1)
#: a signature that is trusted less is not to be relied on
_DOUBTFUL = 0.5


def tell(
    store: Store,
    release: Release,
    filesystem: str,
    last_end: datetime,
    signatures: pl.DataFrame,
    volumes: pl.DataFrame,
    traced_count: int,
    days: int,
    into: Path,
) -> None:
    """Print the story, and write its two pictures into a folder.

    filesystem: the one that is asked about; last_end: of the site. signatures, volumes: what was found, beside the
    truth. traced_count: real logs that landed. days: of the made-up site.
    """
    _say(
        f"{counted(days, 'day')} of a made-up machine: its job log, and what its storage moved every 2 s, with other "
        "jobs' traffic, failed runs, gaps and damaged files. Beside it a third of a day of a machine whose servers "
        f"count by job, and {traced_count} real Darshan logs."
    )
    click.echo()
    best = _best(signatures)
    with processes.pool(None) as pool:
        asked = (store.root, release, filesystem, last_end, into / "who.png")
        names = pool.begin(_who_wrote, *asked)
        drawn = pool.begin(_draw_signature, store.root, release, *best, into / "signature.png") if best else None
        _show_signatures(signatures)
        _tell_doubtful(signatures)
        _tell_volumes(volumes)
        if names.result():
            _say(f"Who wrote most on {filesystem} on the last day: {names.result()}.")
        click.echo()
        _tell_release(store, release)
        if drawn is not None:
            drawn.result()
    click.echo("Look at what was drawn:")
    for picture in ("signature.png", "who.png"):
        if (into / picture).exists():
            click.echo(f"  {into / picture}")
    _go_on(store, best[0] if best else "NAME", filesystem, last_end)


def _say(sentences: str) -> None:
    click.echo(click.wrap_text(sentences, 80))


def _show_signatures(signatures: pl.DataFrame) -> None:
    """Print what moves most, found and true."""
    moved = signatures.filter(signatures["true_burst_count"] > 0).sort("true_volume_bytes", descending=True)
    rows = [
        (
            f"{row['application']} {row['direction']}s",
            bytes_text(row["volume_bytes"]),
            bytes_text(row["true_volume_bytes"]),
            f"{row['true_burst_count'] - row['missed_burst_count']} of {row['true_burst_count']}",
            row["false_burst_count"],
            None if row["trust"] is None else f"{row['trust']:.2f}",
        )
        for row in moved.iter_rows(named=True)
    ]
    columns = ("a run of", "found", "truth", "bursts found", "false", "trust")
    show("What each application does to storage, found in the noise", columns, rows)


def _tell_doubtful(signatures: pl.DataFrame) -> None:
    """Print which signatures are hardly trusted, and how many bursts of the runs an eye sees that they lack."""
    told = []
    doubtful = signatures.filter((signatures["trust"] < _DOUBTFUL) & (signatures["true_burst_count"] > 0))
    for row in doubtful.sort("trust").iter_rows(named=True):
        count = row["lacked_burst_count"]
        lacks = f" (lacks {counted(count, 'burst')} of its runs)" if count else ""
        told.append(f"{row['application']} {row['direction']}s{lacks}")
    if told:
        _say(f"Trust is of 1. Below {_DOUBTFUL} do not rely on it: {', '.join(told)}.")


def _tell_release(store: Store, release: Release) -> None:
    """Print the release, and of what its checks warn."""
    from flows.command.summary import warnings
    from warehouse.releases.reading import opened

    with opened(store, release, "quality") as connection:
        found = [happened for _, happened, _ in warnings(connection)]
    _say(f"Release {release.release_id}, {release.verdict}{':' if found else '.'}")
    for happened in found:
        _say(f"  {happened}")
    if found:
        _say("  (The second machine was watched for a third of a day.)")


def _tell_volumes(volumes: pl.DataFrame) -> None:
    """Print in a sentence what servers counted beside what was cut out of shared traffic."""
    if volumes.is_empty():
        return
    row = volumes.sort("exact_bytes", descending=True).row(0, named=True)
    runs, exact = int(volumes["run_count"].sum()), int(volumes["true_run_count"].sum())
    _say(
        f"Servers that count by job: {exact} of {runs} volumes are true to the byte. A run of {row['application']} "
        f"{row['direction']}s {bytes_text(row['exact_bytes'])}; what was cut out of shared traffic is "
        f"{bytes_text(row['cut_bytes'])}."
    )


def _best(signatures: pl.DataFrame) -> tuple[str, str] | None:
    """Return the application and direction of the signature that is trusted most of those with several bursts."""
    several = signatures.filter((signatures["burst_count"] > 2) & signatures["trust"].is_not_null())
    if several.is_empty():
        return None
    best = several.sort("trust", descending=True).row(0, named=True)
    return best["application"], best["direction"]


# ---- the pictures, drawn by processes of their own

#: what these import
IMPORTED_TO_DRAW = ("reports.signatures", "flows.attribution.picture", "matplotlib.backends.backend_agg")


def _draw_signature(root: Path, release: Release, application: str, direction: str, target: Path) -> None:
    from flows.signatures.view import Asked, view_of
    from reports.signatures import draw

    draw(view_of(Store(root), release, Asked(application, direction=direction)), target)


def _who_wrote(root: Path, release: Release, filesystem: str, last_end: datetime, target: Path) -> str:
    """Draw who moved bytes on the last whole day, and return who wrote most; nothing where nobody is known to have."""
    from flows.attribution.asking import Asked, who
    from flows.attribution.picture import view_of
    from reports.attribution import draw
    from warehouse.errors import NothingToDo

    try:
        told = who(Store(root), release, Asked.of(filesystem, None, last_end - _DAY, last_end, "write"))
    except NothingToDo:
        return ""
    first = told.applications.head(3).iter_rows(named=True)
    names = ", ".join(f"{row['application']} ({row['explained_bytes'] / told.measured_bytes:.0%})" for row in first)
    if names:
        draw(view_of(told), target)
    return names


def _go_on(store: Store, name: str, filesystem: str, last_end: datetime) -> None:
    until = f"{last_end:%Y-%m-%dT%H:%M}"
    click.echo("\nGo on:")
    click.echo(f"  export IOSIG_WAREHOUSE={shlex.quote(str(store.root))}")
    click.echo(f"  {command(f'who {filesystem} --since {last_end - _DAY:%Y-%m-%dT%H:%M} --until {until}')}")
    click.echo(f"  {command(f'plot signature {name} --to {name}.png')}")
    click.echo("  " + command('sql "from signatures where is_default"'))
