"""`iosig classify`: classify the I/O of one input."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from iosig.cli.options import (
    GlobalOptions,
    exit_code,
    json_option,
    strict_option,
    time_zone_option,
    trace_argument,
    value_option,
)

if TYPE_CHECKING:
    import polars as pl

    from iosig.answers.single.classes import ClassResult
    from iosig.answers.single.throughput import By


@click.command("classify")
@trace_argument
@click.option("--direction", type=click.Choice(["read", "write"]), help="Direction of the bytes of bare columns.")
@value_option
@time_zone_option
@click.option(
    "--signal",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the trace's throughput to this file, one row per step: CSV if it ends in .csv, else Parquet.",
)
@click.option(
    "--by",
    type=click.Choice(["rank", "host", "file", "ost"]),
    help="Group the throughput by this. It is computed from single requests.",
)
@json_option
@strict_option
@click.pass_obj
def classify_command(
    warehouse: GlobalOptions,
    path: Path,
    direction: str | None,
    value: str | None,
    time_zone: str | None,
    signal: Path | None,
    by: By | None,
    as_json: bool,
) -> int:
    """Classify a series of a job's or node's own, or a traced run, without a warehouse (PEARC'18, section 4.1).

    TRACE is a series, a Darshan log, a TMIO trace, a Recorder trace (its folder, or a tar archive of it), a DFTracer
    trace (its folder or file), or a compressed trace.
    """
    from iosig.answers.single.classes import ClassesDocument, classify_input, signal_intervals
    from iosig.cli.printing import bytes_text, show, show_json
    from iosig.streams.landing import ReadOptions
    from iosig.warehouse.errors import UsageError

    read_options = ReadOptions(direction=direction, value=value, time_zone=time_zone)
    if by and signal is None:
        raise UsageError("--by groups the throughput that --signal writes: add --signal FILE.")
    result = classify_input(path, warehouse.settings(), read_options, by)
    if signal is not None:
        _write_steps(signal_intervals(result.signals) if result.throughput is None else result.throughput, signal)
    code = exit_code(result.refused_count)
    if as_json:
        show_json(ClassesDocument(name=result.name, classes=result.classes.to_dicts()))
        return code
    show(
        f"Classes of {result.name}",
        ("subject", "direction", "class", "volume", "quarters", "cv", "duration_s"),
        [
            (
                row["subject_id"] if row["subject_id"] != result.name else None,
                row["direction"],
                row["label"] or row["outcome"],
                bytes_text(row["volume_bytes"]),
                " ".join(bytes_text(part) for part in row["section_bytes"] or []) or None,
                row["cv"],
                row["duration_s"],
            )
            for row in result.classes.iter_rows(named=True)
        ],
    )
    if result.counters.height:
        show(
            "Modules", ("module", "outcome", "counts", "read", "written", "signal", "covered", "why"), _modules(result)
        )
    return code


def _modules(result: ClassResult) -> list[tuple[Any, ...]]:
    """Return the rows of the module table: how each module was read, whether it counts, and the basis of its signal."""
    from iosig.cli.printing import bytes_text

    bases: dict[str, set[str]] = {}
    for row in result.signals.iter_rows(named=True):
        bases.setdefault(row["module"], set()).add(row["basis"])
    return [
        (
            row["module"],
            row["outcome"],
            "yes" if row["is_counted"] else "no",
            None if row["read_bytes"] is None else bytes_text(row["read_bytes"]),
            None if row["written_bytes"] is None else bytes_text(row["written_bytes"]),
            ", ".join(sorted(bases.get(row["module"], ()))) or None,
            None if row["covered_ratio"] is None else f"{row['covered_ratio']:.1%}",
            row["reason"],
        )
        for row in result.counters.iter_rows(named=True)
    ]


def _write_steps(steps: pl.DataFrame, target: Path) -> None:
    """Write signals as rows of time and rate, to Parquet or, if the file name ends in .csv, to CSV."""
    from iosig.warehouse.errors import UsageError
    from iosig.warehouse.placing import atomic_write

    if steps.is_empty():
        raise UsageError("No signal to write: the input is not a trace, or it has no times of transfers.")
    with atomic_write(target.absolute()) as temporary:
        if target.suffix.lower() == ".csv":
            steps.write_csv(temporary)
        else:
            steps.write_parquet(temporary)
