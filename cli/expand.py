"""`iosig expand`: print the calls of a compressed trace, or their totals."""

from __future__ import annotations

from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from iosig.cli.options import json_option, strict_option
from iosig.traces.extrapolation.view import spans
from iosig.warehouse.errors import NothingToDo, UsageError

if TYPE_CHECKING:
    import polars as pl

    from iosig.transforms.traces.trace import CompressedTrace

_TICKS_PER_S = 10_000_000
#: upper limit of times [s]: the ticks of larger ones do not fit in 64 bits
_MAX_TIME_S = 1e11
_BATCH_LINES = 1 << 18


@click.command("expand")
@click.argument("path", metavar="FILE", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--rank", "single", type=click.IntRange(min=0), multiple=True, help="Print this rank. Repeatable.")
@click.option("--ranks", "listed", metavar="A-B,C", help="Print these ranks, such as 0-7 or 0-7,12.")
@click.option(
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write one text file per rank into this new folder, as recorder2text does.",
)
@click.option("--totals", "with_totals", is_flag=True, help="Print totals of all ranks, without expanding them.")
@json_option
@strict_option
def expand_command(
    path: Path, single: tuple[int, ...], listed: str | None, output: Path | None, with_totals: bool, as_json: bool
) -> int:
    """Print the calls of a rank of a compressed trace, or the totals of all ranks.

    FILE is the output of `iosig compress` or `iosig extrapolate`. A line has the format of recorder2text: start and end
    in seconds, function, level, type, arguments. Times are the means of the trace's histograms.
    """
    if bool(single or listed) == with_totals:
        raise UsageError("Select ranks (--rank 0, --ranks 0-7), or pass --totals.")
    if output is not None and (as_json or with_totals):
        raise UsageError("--output writes text files and cannot be combined with --json or --totals.")
    from iosig.traces.extrapolation.view import read

    if output is not None and output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise UsageError(f"{output} exists and is not an empty folder. Choose a new or empty one.")
    trace = read(path)
    if with_totals:
        _print_totals(path.name, trace, as_json=as_json)
        return 0
    rank_list = ",".join([*map(str, single), *filter(None, (listed,))])
    ranks = list(dict.fromkeys(rank for span in spans(rank_list, trace.process_count) for rank in span))
    if output is not None:
        _write_ranks(trace, ranks, output)
    elif as_json:
        _print_json(trace, ranks)
    else:
        from iosig.cli.printing import binary_stdout

        stream = binary_stdout("text")
        for rank in ranks:
            _write_lines(_expand_calls(trace, rank), stream)
        stream.flush()
    return 0


def _expand_calls(trace: CompressedTrace, rank: int) -> pl.DataFrame:
    from iosig.traces.extrapolation.view import refuse_unusable
    from iosig.transforms.traces.expansion import rank_calls

    with refuse_unusable():
        calls = rank_calls(trace, rank)
        if calls.height and not calls["end_s"].max() <= _MAX_TIME_S:  # type: ignore[operator]
            raise ValueError(f"Rank {rank} has calls at impossible times.")
        return calls


# ---- text


def _lines(calls: pl.DataFrame) -> pl.Series:
    """Return the calls in the format of recorder2text; line breaks within text are escaped."""
    import polars as pl

    from iosig.transforms.traces.checks import MODULES

    def seconds(name: str) -> list[pl.Expr]:
        ticks = (pl.col(name) * _TICKS_PER_S).round().cast(pl.Int64)
        return [ticks // _TICKS_PER_S, pl.lit("."), (ticks % _TICKS_PER_S).cast(pl.String).str.zfill(7), pl.lit(" ")]

    def shown(name: str) -> pl.Expr:
        return pl.col(name).str.replace_all("\n", r"\n", literal=True).str.replace_all("\r", r"\r", literal=True)

    kinds = {name: f" {number} ( " for number, name in enumerate(MODULES)}
    space = pl.when(pl.col("arguments") == "").then(pl.lit("")).otherwise(pl.lit(" "))
    parts = [
        *seconds("start_s"),
        *seconds("end_s"),
        shown("function"),
        pl.lit(" "),
        pl.col("level"),
        pl.col("module").replace_strict(kinds, default=kinds["FTRACE"], return_dtype=pl.String),
        shown("arguments"),
        space,
        pl.lit(")\n"),
    ]
    return calls.select(pl.concat_str(parts)).to_series()


def _write_lines(calls: pl.DataFrame, target: IO[bytes]) -> None:
    for part in calls.iter_slices(_BATCH_LINES):
        target.write("".join(_lines(part).to_list()).encode())


def _write_ranks(trace: CompressedTrace, ranks: list[int], output: Path) -> None:
    """Write one file per rank: all files appear at once, or none does."""
    from iosig.warehouse.placing import atomic_write

    width, line_count = len(str(trace.process_count - 1)), 0
    with atomic_write(output.absolute()) as folder:
        folder.mkdir()
        for rank in ranks:
            calls = _expand_calls(trace, rank)
            line_count += calls.height
            with (folder / f"{rank:0{width}}.txt").open("wb") as file:
                _write_lines(calls, file)
        if not line_count:
            raise NothingToDo("No file was written: these ranks have no traced calls.")
    click.echo(f"{len(ranks):,} ranks, {line_count:,} calls in {output}", err=True)


# ---- JSON and totals


def _print_json(trace: CompressedTrace, ranks: list[int]) -> None:
    import polars as pl

    from iosig.warehouse.printable import escape_controls

    rows = pl.concat([_expand_calls(trace, rank).select(pl.lit(rank).alias("rank"), pl.all()) for rank in ranks])
    # the text of a `CallsDocument`, which may have too many calls to build the object
    click.echo(f'{{"format": "iosig-calls/1", "calls": {escape_controls(rows.write_json())}}}')


def _print_totals(name: str, trace: CompressedTrace, *, as_json: bool) -> None:
    from iosig.cli.printing import bytes_text, show, show_json
    from iosig.traces.extrapolation.view import recorder_forms, refuse_unusable
    from iosig.transforms.traces.totals import compute_totals

    with refuse_unusable():
        totals = compute_totals(trace, recorder_forms())
    if as_json:
        from iosig.cli.documents import TotalsDocument

        show_json(TotalsDocument.model_validate(totals))
        return
    within = {False: "program", True: "other calls", None: "both"}
    show(
        f"Bytes of {name}, {totals.process_count:,} ranks",
        ("module", "called by", "reads", "read", "writes", "written"),
        [
            (
                row.module,
                within[row.is_nested],
                row.read_count,
                bytes_text(row.read_bytes),
                row.write_count,
                bytes_text(row.written_bytes),
            )
            for row in totals.modules
        ],
    )
    show("Calls", ("module", "function", "calls"), [(row.module, row.function, row.call_count) for row in totals.calls])
    show(
        "Files", ("path", "files", "ranks", "calls", "read", "written", "nested"), list(map(_file_cells, totals.files))
    )


def _file_cells(row: Any) -> tuple[Any, ...]:
    from iosig.cli.printing import bytes_text

    nested = (
        None
        if None in (row.nested_read_bytes, row.nested_written_bytes)
        else (row.nested_read_bytes + row.nested_written_bytes)
    )
    return (
        row.path,
        row.file_count,
        row.rank_count,
        row.call_count,
        bytes_text(row.read_bytes),
        bytes_text(row.written_bytes),
        bytes_text(nested) if row.nested_call_count else None,
    )
