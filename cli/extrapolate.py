"""`iosig extrapolate`: extrapolate traces to another rank count."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from iosig.cli.options import EXIT_REFUSED, GlobalOptions, compressed_option, json_option

if TYPE_CHECKING:
    from iosig.transforms.extrapolation.result import ExtrapolatedTrace


@click.command("extrapolate")
@click.argument("traces", metavar="TRACE...", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True))
@click.option("--ranks", "process_count", type=click.IntRange(min=1), required=True, help="Target number of ranks.")
@compressed_option
@click.option("--nested", "has_nested", is_flag=True, help="Also extrapolate the POSIX calls within MPI-IO calls.")
@click.option(
    "--models",
    metavar="FILE.py",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Python file with additional models, tried after the built-in ones. The file is executed.",
)
@json_option
@click.pass_obj
def extrapolate_command(
    warehouse: GlobalOptions,
    traces: tuple[Path, ...],
    process_count: int,
    output: Path,
    has_nested: bool,
    models: Path | None,
    as_json: bool,
) -> int:
    """Extrapolate a program's I/O trace to a rank count that was never run.

    TRACEs are Recorder traces (folders, or tars of them) of the same program with the same parameters, at four or more
    rank counts. Every rank list, loop, offset, count and file name must follow a model of the rank count exactly, at
    all rank counts. If one does not, nothing is written and it is named (exit code 3). Times are fitted.
    """
    from iosig.cli.printing import progress_bar, say, show_json
    from iosig.traces.extrapolation.compression import keep_apart
    from iosig.traces.extrapolation.extrapolating import ExtrapolationRequest, extrapolate_traces
    from iosig.traces.extrapolation.records import land_if_there, metadata
    from iosig.transforms.traces.frames import to_frame
    from iosig.warehouse.sources.extrapolations import compressed_traces

    keep_apart(output, traces)
    result, record = extrapolate_traces(ExtrapolationRequest(traces, process_count, has_nested, models), progress_bar)
    if result.trace is not None:
        fields = {"process_count": str(process_count)} | metadata(record)
        compressed_traces.write(output, to_frame(result.trace), fields)
    landed = land_if_there(warehouse.store, record, output.name, warehouse.settings())
    if as_json:
        from iosig.cli.documents import ExtrapolationDocument

        show_json(ExtrapolationDocument(**record.row()))
    else:
        _show(result, output)
    if landed is not None:
        say("The warehouse has a record of it; the next `iosig run` publishes it in `extrapolations`.", err=True)
    return 0 if result.trace is not None else EXIT_REFUSED


def _show(result: ExtrapolatedTrace, output: Path) -> None:
    from iosig.cli.printing import show

    counts_text = ", ".join(map(str, result.rank_counts))
    if result.trace is None:
        show(
            f"Refused: no trace of {result.process_count:,} ranks from those of {counts_text}",
            ("field", "why"),
            [(refusal.field, refusal.reason) for refusal in result.refusals],
        )
        return
    show(
        f"{output}: the trace of {result.process_count:,} ranks, from those of {counts_text}",
        ("field", "model"),
        [(model.field, model.formula) for model in result.models],
    )
