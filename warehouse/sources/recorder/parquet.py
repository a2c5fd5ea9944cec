"""Read Recorder's Parquet export (recorder2parquet): one file per rank, one row per call.

The export is incomplete, unlike the text and the raw trace. Its times have single precision, which is ten times coarser
than Recorder's own after a second and a thousand times after two minutes. It has only the first ten arguments.
"""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import polars as pl

from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.files.opening import refusing_parquet_damage
from iosig.warehouse.sources.recorder.calls import MODULES, Rank, Run, build_calls, check_count
from iosig.warehouse.sources.recorder.files import Files
from iosig.warehouse.sources.recorder.text import map_ranks

_ARGUMENT_COUNT = 10
_ARGUMENTS = [f"args_{number}" for number in range(1, _ARGUMENT_COUNT + 1)]
_NUMBERS: dict[str, type[pl.DataType]] = {
    "index": pl.Int64,
    "rank": pl.Int64,
    "cat": pl.Int64,
    "level": pl.Int64,
    "arg_count": pl.Int64,
}
_TIMES: dict[str, type[pl.DataType]] = {"tstart": pl.Float64, "tend": pl.Float64}
_TEXTS: dict[str, type[pl.DataType]] = dict.fromkeys(["func_id", *_ARGUMENTS], pl.String)
_SCHEMA = _NUMBERS | _TIMES | _TEXTS
_MAX_LEVEL = 255
_REMEDY = "Write the export again with recorder2parquet of Recorder 2.5, or land the raw trace."


def open_run(files: Files) -> Run[Rank]:
    """Build the run from the names of the files."""
    names = map_ranks(files)

    def decode(rank: int) -> Rank:
        return convert_rows(rank, _table(files.read(names[rank])))

    return Run(None, max(names) + 1, None, None, tuple(sorted(names)), decode)


def _table(content: bytes) -> pl.DataFrame:
    import pyarrow.parquet

    with refusing_parquet_damage(_REMEDY):
        file = pyarrow.parquet.ParquetFile(io.BytesIO(content))
        check_count(file.metadata.num_rows)
        missing = [name for name in _SCHEMA if name not in file.schema_arrow.names]
        if missing:
            raise InputRefused(f"The export has no column {', '.join(missing)}.", _REMEDY)
        table = pl.DataFrame(pl.from_arrow(file.read(columns=list(_SCHEMA))))
        plain = table.select(_unpack(name, table.schema[name]) for name in _SCHEMA)
        mistyped = [name for name, dtype in plain.schema.items() if not _has_type(dtype, _SCHEMA[name])]
        if mistyped:
            raise InputRefused(f"The export has values of another type in {', '.join(mistyped)}.", _REMEDY)
        return plain.cast(pl.Schema(_SCHEMA))


def _has_type(dtype: pl.DataType, expected: type[pl.DataType]) -> bool:
    if expected == pl.String:
        return dtype == pl.String
    return dtype.is_float() if expected == pl.Float64 else dtype.is_integer()


def _unpack(name: str, dtype: pl.DataType) -> pl.Expr:
    """Unpack a column to one value per row, since the export declares most columns as lists of one value."""
    if not isinstance(dtype, pl.List):
        return pl.col(name)
    return pl.when(pl.col(name).list.len() == 1).then(pl.col(name).list.first())


def convert_rows(rank: int, rows: pl.DataFrame) -> Rank:
    """Convert the rows of an export to the calls of a rank, in order."""
    if sum(rows.null_count().row(0)):
        raise InputRefused("The export lacks values.", _REMEDY)
    if (np.diff(rows["index"].to_numpy()) != 1).any() or (rows["rank"] != rank).any():
        raise InputRefused("The export's rows are not consecutively numbered calls of a single rank.", _REMEDY)
    is_known = pl.col("cat").is_between(0, len(MODULES) - 1) & pl.col("level").is_between(0, _MAX_LEVEL)
    if not rows.select((is_known & (pl.col("arg_count") >= 0)).all()).item():
        raise InputRefused("The export has calls with an invalid type, level or number of arguments.", _REMEDY)
    return Rank(build_calls(rank, _columns(rows)), shortened_count=int((rows["arg_count"] > _ARGUMENT_COUNT).sum()))


def _columns(rows: pl.DataFrame) -> dict[str, Any]:
    is_user = pl.col("cat") == MODULES.index("FTRACE")
    listed = pl.concat_list(_ARGUMENTS).list.head(pl.col("arg_count").clip(0, _ARGUMENT_COUNT)).list.join(" ")
    return rows.select(
        pl.col("level"),
        # The program's own functions get no arguments, as in recorder2text.
        arguments=pl.when(is_user).then(pl.lit("")).otherwise(listed),
        module=pl.col("cat").replace_strict(dict(enumerate(MODULES)), return_dtype=pl.String),
        function=pl.col("func_id"),
        start_s=pl.col("tstart"),
        end_s=pl.col("tend"),
    ).to_dict()
