"""`iosig replay`: execute the calls of a trace again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from iosig.cli.options import json_option

if TYPE_CHECKING:
    from iosig.traces.replay.reports import Report

_MAX_FILES = 20


@click.command("replay")
@click.argument("trace", type=click.Path(path_type=Path, exists=True))
@click.option("--ranks", metavar="LIST", help="Ranks to replay, such as 0-31,100. Default: all.")
@click.option("--processes", type=click.IntRange(1), help="Number of processes that share the ranks.")
@click.option(
    "--fast/--timed", "is_fast", default=True, help="Replay without waiting (default), or at the traced pace."
)
@click.option(
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    help="New or empty folder for the files. Default: a temporary folder, deleted afterwards.",
)
@click.option("--dry-run", is_flag=True, help="Print what would be done, and the required disk space.")
@click.option("--mpi", is_flag=True, help="Replay MPI-IO calls by MPI, not as POSIX calls.")
@click.option("--nested", is_flag=True, help="Replay the POSIX calls within MPI-IO calls, not the MPI-IO calls.")
@click.option(
    "--trace-output",
    type=click.Path(path_type=Path, file_okay=False),
    help="New or empty folder for a trace of the replay, in the form of recorder2text.",
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Random seed of sampled delays.")
@json_option
def replay_command(
    trace: Path,
    ranks: str | None,
    processes: int | None,
    is_fast: bool,
    output: Path | None,
    dry_run: bool,
    mpi: bool,
    nested: bool,
    trace_output: Path | None,
    seed: int,
    as_json: bool,
) -> int:
    """Replay a trace by separate processes, which execute the calls of its ranks on files under one folder.

    TRACE is a Recorder trace (a folder or an archive) or a compressed or extrapolated one. Every path is remapped under
    the folder; nothing outside is touched. Outer calls are replayed in each rank's order; MPI's collective calls
    synchronize the ranks.
    """
    from iosig.cli.printing import show_json
    from iosig.traces.replay.replaying import ReplayOptions, replay
    from iosig.warehouse.errors import UsageError

    if mpi and nested:
        raise UsageError("--mpi cannot be combined with --nested.")
    if mpi and processes is not None:
        raise UsageError("--mpi cannot be combined with --processes: every rank is a process.")
    options = ReplayOptions(
        ranks=ranks,
        process_count=processes,
        is_timed=not is_fast,
        output=output,
        is_dry_run=dry_run,
        mode="mpi" if mpi else "nested" if nested else "posix",
        trace_output=trace_output,
        seed=seed,
    )
    report = replay(trace, options, lambda line: click.echo(f"replay: {line}", err=True))
    if as_json:
        from iosig.cli.documents import ReplayDocument

        show_json(ReplayDocument(**report.document()))
    else:
        _show(report)
    return 0


def _show(report: Report) -> None:
    from iosig.cli.printing import bytes_text, say, show

    subject = f"{report.rank_count:,} ranks by {report.process_count:,} processes, under {report.folder}"
    say(f"{'Would replay' if report.is_dry_run else 'Replayed'} {subject}\n")
    show("Calls", ("function", "trace", "replayed", "failed"), _call_rows(report))
    show("Sums", ("what", "trace", "replayed"), _sum_rows(report))
    files = [(file.path, file.traced_bytes, file.replayed_bytes, file.prepared_bytes) for file in report.files]
    show("Files", ("path", "trace [B]", "replayed [B]", "made before [B]"), files[:_MAX_FILES])
    if len(files) > _MAX_FILES:
        click.echo(f"… and {len(files) - _MAX_FILES:,} more (--json lists all)\n")
    left_out = [(function, reason, count) for (function, reason), count in sorted(report.not_replayed.items())]
    if left_out:
        show("Not replayed", ("function", "why", "calls"), left_out)
    say(f"Disk space needed: up to {bytes_text(report.needed_bytes)}")
    for name, reason in sorted(report.ignored.items()):
        say(f"Ranks do not synchronize on {name}: {reason}.")
    for note, count in sorted(report.notes.items()):
        say(f"{count:,} times: {note}.")
    if not report.is_dry_run:
        differences = report.differences()
        say("Differs from the trace:" if differences else "Bytes, calls and file sizes match the trace.")
        for line in differences:
            say(f"  {line}")


def _call_rows(report: Report) -> list[tuple[object, ...]]:
    failed: dict[str, int] = {}
    for (function, _), count in report.failures.items():
        failed[function] = failed.get(function, 0) + count
    replayed = None if report.is_dry_run else report.replayed_calls
    return [
        (
            function,
            count,
            None if replayed is None else replayed[function],
            None if replayed is None else failed.get(function, 0),
        )
        for function, count in sorted(report.traced_calls.items())
    ]


def _sum_rows(report: Report) -> list[tuple[object, ...]]:
    is_done = not report.is_dry_run
    return [
        ("read [B]", report.traced_read_bytes, report.read_bytes if is_done else None),
        ("written [B]", report.traced_written_bytes, report.written_bytes if is_done else None),
        (f"time [s]{' by means' if report.is_time_drawn else ''}", report.traced_s, report.replayed_s),
    ]
