"""Arguments that are no parameters: addresses and what uninitialized memory held, which no run shares with another.

Recorder writes `%p` for pointers. It writes MPI_Op and MPI_Group as the numbers that they are in the MPI library,
which with Open MPI are addresses, and MPI_Status as `[source_tag]`, which MPI-IO leaves uninitialized.
"""

from __future__ import annotations

import polars as pl

#: what Recorder itself writes for a pointer
POINTER = "%p"
_STATUS = r"^\[-?[0-9]+_-?[0-9]+\]$"
#: counts, ranks and tags of MPI are C ints, of 31 bits and the sign
_LARGEST_INT = (1 << 31) - 1


def without_addresses(signatures: pl.DataFrame) -> pl.DataFrame:
    """Return calls (level, module, function, arguments) with `%p` for addresses and statuses; rows can become equal.

    In calls of MPI that are not of MPI-IO, a whole argument is an address if it is a number that no C int holds.
    """
    each = pl.element()
    is_status = each.str.contains(_STATUS)
    is_too_large = (each.cast(pl.Int64, strict=False) > _LARGEST_INT).fill_null(value=True)
    is_address = each.str.contains("^[0-9]+$") & is_too_large
    given = pl.col("arguments").str.split(" ")

    def marked(is_hidden: pl.Expr) -> pl.Expr:
        return given.list.eval(pl.when(is_hidden).then(pl.lit(POINTER)).otherwise(each)).list.join(" ")

    masked = (
        pl.when(pl.col("module") == "MPI")
        .then(marked(is_status | is_address))
        .when(pl.col("module") == "MPIIO")
        .then(marked(is_status))
        .otherwise("arguments")
    )
    return signatures.with_columns(arguments=masked)
