"""Derive requests from Recorder's calls: file, offset, bytes, and sums per process and file.

Recorder logs arguments, but no return values. The bytes of a request are therefore the *requested* bytes: short and
failed reads or writes look like complete ones, and failed opens like successful ones.

POSIX calls have the file's name but not its descriptor, and `read`, `write` and similar calls have no offset. The
offset is tracked through the opens, seeks, reads and writes of one process and name, on the assumption that each call
transferred the requested bytes. It is NULL if it is ambiguous: if the file is open twice, is written at its end or
sought from its end, is used through a stream and a descriptor at once, or is accessed through a derived file type or a
shared pointer. The bytes of a derived datatype are NULL, too, because Recorder logs its name but not its layout.

The duration of nonblocking and split collective requests is that of the call that started them. Recorder 2.5 logs their
request handle as `%p` and does not log the `_end` call, so the completing wait is unknown.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np
import numpy.typing as npt
import polars as pl

from iosig.warehouse.contracts.traces import TRACE_METADATA, TRACE_RECORDS, TRACE_REQUESTS
from iosig.warehouse.sources.protocol import Batch
from iosig.warehouse.sources.rows import traced
from iosig.warehouse.sources.rows.rejects import reject_batches

Flags = npt.NDArray[np.bool_]

_O_APPEND = 1024
_MPI_MODE_APPEND = 128
_F_SETFL = 4
#: maximum plausible size or offset; products and sums of larger values could overflow 64 bits
_MAX_BYTES = 1 << 60
#: functions with a logged length that includes the final NUL, which is not written
WITH_FINAL_NUL = ("fprintf", "vfprintf")
#: names that Recorder logs for unknown files
_UNKNOWN = ("???", "MPI_FILE_NULL", "MPI_FILE_UNKNOWN")
#: maximum nesting level; deeper calls are treated like calls at this level
MAX_LEVELS = 32
_ARGUMENT_COLUMNS = ("file_at", "count_at", "size_at", "type_at", "offset_at", "whence_at", "flags_at", "path_at")

_KEPT_COLUMNS = (
    *("layer", "rank", "call", "operation", "pointer", "is_async", "is_nested", "start_s", "end_s", "stream", "name"),
    *("path", "offset", "whence", "flags", "flags_at", "type", "count", "copies", "request_bytes", "is_malformed"),
)

#: name from `MPI_Type_get_name` -> size of MPI's predefined datatype under LP64 [B]; Fortran types have default sizes
TYPE_BYTES = {
    **dict.fromkeys(("MPI_BYTE", "MPI_PACKED", "MPI_CHAR", "MPI_SIGNED_CHAR", "MPI_UNSIGNED_CHAR"), 1),
    **dict.fromkeys(("MPI_INT8_T", "MPI_UINT8_T", "MPI_C_BOOL", "MPI_CXX_BOOL", "MPI_CHARACTER", "MPI_INTEGER1"), 1),
    **dict.fromkeys(("MPI_SHORT", "MPI_UNSIGNED_SHORT", "MPI_INT16_T", "MPI_UINT16_T", "MPI_INTEGER2", "MPI_REAL2"), 2),
    **dict.fromkeys(("MPI_INT", "MPI_UNSIGNED", "MPI_UNSIGNED_INT", "MPI_INT32_T", "MPI_UINT32_T", "MPI_WCHAR"), 4),
    **dict.fromkeys(("MPI_FLOAT", "MPI_INTEGER", "MPI_INTEGER4", "MPI_REAL", "MPI_REAL4", "MPI_LOGICAL"), 4),
    **dict.fromkeys(("MPI_LONG", "MPI_UNSIGNED_LONG", "MPI_LONG_LONG", "MPI_LONG_LONG_INT"), 8),
    **dict.fromkeys(("MPI_UNSIGNED_LONG_LONG", "MPI_INT64_T", "MPI_UINT64_T", "MPI_DOUBLE", "MPI_INTEGER8"), 8),
    **dict.fromkeys(("MPI_AINT", "MPI_OFFSET", "MPI_COUNT", "MPI_REAL8", "MPI_DOUBLE_PRECISION", "MPI_COMPLEX"), 8),
    **dict.fromkeys(("MPI_COMPLEX8", "MPI_C_COMPLEX", "MPI_C_FLOAT_COMPLEX", "MPI_CXX_FLOAT_COMPLEX"), 8),
    **dict.fromkeys(("MPI_LONG_DOUBLE", "MPI_REAL16", "MPI_INTEGER16", "MPI_DOUBLE_COMPLEX", "MPI_COMPLEX16"), 16),
    **dict.fromkeys(("MPI_C_DOUBLE_COMPLEX", "MPI_CXX_DOUBLE_COMPLEX"), 16),
    **dict.fromkeys(("MPI_C_LONG_DOUBLE_COMPLEX", "MPI_CXX_LONG_DOUBLE_COMPLEX", "MPI_COMPLEX32"), 32),
}


def _form(names: str, operation: str, pointer: str = "none", **places: int) -> list[dict[str, object]]:
    absent = dict.fromkeys(_ARGUMENT_COLUMNS)
    return [
        {"function": name, "operation": operation, "pointer": pointer, "is_async": False, **absent, **places}
        for name in names.split()
    ]


def _posix_forms() -> list[dict[str, object]]:
    return [
        *_form("open open64", "open", "descriptor", file_at=0, flags_at=1),
        *_form("creat creat64", "open", "descriptor", file_at=0),
        *_form("fopen fopen64", "open", "stream", file_at=0, flags_at=1),
        *_form("close fclose", "close", file_at=0),
        *_form("read", "read", "descriptor", file_at=0, count_at=2),
        *_form("write", "write", "descriptor", file_at=0, count_at=2),
        *_form("readv", "read", "descriptor", file_at=0, count_at=1),
        *_form("writev", "write", "descriptor", file_at=0, count_at=1),
        *_form("pread pread64", "read", "explicit", file_at=0, count_at=2, offset_at=3),
        *_form("pwrite pwrite64", "write", "explicit", file_at=0, count_at=2, offset_at=3),
        *_form("fread", "read", "stream", file_at=3, size_at=1, count_at=2),
        *_form("fwrite", "write", "stream", file_at=3, size_at=1, count_at=2),
        # the logged length includes the final NUL, which is not written
        *_form("fprintf vfprintf", "write", "stream", file_at=0, count_at=1),
        *_form("lseek lseek64", "seek", "descriptor", file_at=0, offset_at=1, whence_at=2),
        *_form("fseek fseeko", "seek", "stream", file_at=0, offset_at=1, whence_at=2),
        *_form("__xstat __xstat64 __lxstat __lxstat64 __fxstat __fxstat64", "stat", file_at=1),
        *_form("stat stat64 lstat lstat64 fstat fstat64", "stat", file_at=0),
        *_form("fsync fdatasync", "sync", file_at=0),
        *_form("fcntl", "control", file_at=0, count_at=1, flags_at=2),
        *_form("fdopen fileno ftell ftello access unlink remove rename", "other", file_at=0),
        *_form("truncate ftruncate chmod chown lchown utime", "other", file_at=0),
        *_form("dup dup2", "copy"),
    ]


def _mpi_forms() -> list[dict[str, object]]:
    forms = [
        *_form("MPI_File_open", "open", "individual", file_at=4, path_at=1, flags_at=2, type_at=0),
        *_form("MPI_File_close", "close", file_at=0),
        *_form("MPI_File_seek", "seek", "individual", file_at=0, offset_at=1, whence_at=2),
        *_form("MPI_File_seek_shared", "seek", file_at=0),
        *_form("MPI_File_set_view", "view", "individual", file_at=0, offset_at=1, type_at=2, flags_at=3),
        *_form("MPI_File_sync", "sync", file_at=0),
        *_form("MPI_File_set_size MPI_File_get_size MPI_File_preallocate", "other", file_at=0),
    ]
    for direction in ("read", "write"):
        function = f"MPI_File_{direction}"
        placed = {"file_at": 0, "offset_at": 1, "count_at": 3, "type_at": 4}
        next_ = {"file_at": 0, "count_at": 2, "type_at": 3}
        blocking = [
            *_form(f"{function}_at {function}_at_all", direction, "explicit", **placed),
            *_form(f"{function} {function}_all", direction, "individual", **next_),
            *_form(f"{function}_shared {function}_ordered", direction, "shared", **next_),
        ]
        nonblocking = [
            *_form(
                f"{function}_at_all_begin MPI_File_i{direction}_at MPI_File_i{direction}_at_all",
                direction,
                "explicit",
                **placed,
            ),
            *_form(
                f"{function}_all_begin MPI_File_i{direction} MPI_File_i{direction}_all",
                direction,
                "individual",
                **next_,
            ),
            *_form(f"{function}_ordered_begin MPI_File_i{direction}_shared", direction, "shared", **next_),
        ]
        forms += blocking + [form | {"is_async": True} for form in nonblocking]
    return forms


@cache
def list_forms() -> pl.DataFrame:
    """Describe how Recorder logs each function that accesses files: operation, and positions of arguments."""
    posix = pl.DataFrame(_posix_forms(), infer_schema_length=None).with_columns(layer=pl.lit("POSIX"))
    mpi = pl.DataFrame(_mpi_forms(), infer_schema_length=None).with_columns(layer=pl.lit("MPIIO"))
    return pl.concat([posix, mpi], how="vertical_relaxed").with_columns(pl.col(_ARGUMENT_COLUMNS).cast(pl.Int64))


def find_nested(calls: pl.DataFrame) -> pl.Series:
    """Mark the calls made within another traced POSIX or MPI-IO call."""
    rank = calls["rank"].to_numpy()
    touches = calls["function"].str.starts_with("MPI_File_") | calls["module"].is_in(["POSIX", "MPIIO", "STDIO"])
    is_first = np.append(True, rank[1:] != rank[:-1])[: rank.size]
    levels = np.minimum(calls["level"].to_numpy(), MAX_LEVELS)
    return pl.Series("is_nested", find_enclosed(levels, touches.to_numpy(), is_first))


def find_enclosed(levels: npt.NDArray[np.int64], encloses: Flags, is_first: Flags | None = None) -> Flags:
    """Mark the calls made within an enclosing call; a call precedes the calls that it makes.

    A call that is missing in the trace encloses nothing. is_first: marks the first call of each rank, if the calls are
    those of several ranks; it is never enclosed.
    """
    is_enclosed = np.zeros(levels.size, np.bool_)
    place = np.arange(levels.size, dtype=np.int32)
    for depth in np.unique(levels)[:-1].tolist():
        # The last call at this depth or above encloses the following calls if it is exactly at this depth.
        is_outer = levels <= depth if is_first is None else (levels <= depth) | is_first
        last = np.maximum.accumulate(np.where(is_outer, place, 0))
        is_enclosed |= (levels > depth) & (levels[last] == depth) & (encloses | is_enclosed)[last]
    return is_enclosed


def _argument(place: str) -> pl.Expr:
    return pl.col("given").list.get(pl.col(place), null_on_oob=True)


def _file_calls(calls: pl.DataFrame) -> pl.DataFrame:
    """Select the calls that access files, with their arguments as text and numbers.

    `name` is the name of a POSIX file or the handle of an MPI file; `stream` is the code of the process's file pointer.
    """
    columns = calls.select("rank", "call", "function", "arguments", "start_s", "end_s", find_nested(calls))
    matched = columns.join(list_forms(), on="function", how="inner", maintain_order="left")
    split = matched.with_columns(given=pl.col("arguments").str.split(" "))
    texts = split.with_columns(_argument(place).alias(place.removesuffix("_at")) for place in _ARGUMENT_COLUMNS)
    copies = (pl.col("operation") == "copy") | (
        (pl.col("operation") == "control") & pl.col("count").is_in(["0", "1030"])
    )
    counted = texts.with_columns(
        *(pl.col(name).cast(pl.Int64, strict=False) for name in ("count", "size", "offset")),
        name=pl.when(~pl.col("file").is_in(_UNKNOWN)).then("file"),
        path=pl.when(~pl.col("path").is_in(_UNKNOWN)).then("path"),
        copies=copies.cum_sum().over("rank"),
    )
    numbered = counted.with_columns(stream=pl.struct("layer", "rank", "name").rank("dense"))
    result = numbered.with_columns(request_bytes=_requested_bytes(), is_malformed=_has_bad_arguments())
    raw = pl.when("is_malformed").then(pl.format("{} ( {} )", "function", "arguments"))
    return result.select(*_KEPT_COLUMNS, raw=raw)


def _requested_bytes() -> pl.Expr:
    """Compute the bytes that a read or write requests; NULL for an unknown datatype or a negative count."""
    count = pl.col("count") - pl.col("function").is_in(WITH_FINAL_NUL).cast(pl.Int64)
    by_type = pl.col("type").replace_strict(TYPE_BYTES, default=None, return_dtype=pl.Int64)
    item_bytes = pl.when(pl.col("layer") == "MPIIO").then(by_type).otherwise(pl.col("size").fill_null(1))
    is_valid = (count >= 0) & (item_bytes >= 0) & (count.cast(pl.Float64) * item_bytes.cast(pl.Float64) <= _MAX_BYTES)
    return pl.when(pl.col("operation").is_in(["read", "write"]) & is_valid).then(count * item_bytes)


def _has_bad_arguments() -> pl.Expr:
    """Test whether a read or write lacks arguments."""
    is_missing = [
        pl.col(f"{part}_at").is_not_null() & pl.col(part).is_null() for part in ("count", "size", "offset", "type")
    ]
    return pl.col("operation").is_in(["read", "write"]) & pl.any_horizontal(pl.col("file").is_null(), *is_missing)


def track_pointers(rows: pl.DataFrame) -> pl.Series:
    """Return the file position before each step; NULL if unknown.

    rows: in order, with `stream` (identifies the pointer), `is_set` (whether the step sets the pointer to `to`, NULL if
    unknown) and `by` (number of bytes by which all other steps move the pointer, NULL if unknown).
    """
    stream = rows["stream"].to_numpy()
    if not stream.size:
        return pl.Series("pointer_bytes", [], pl.Int64)
    first = np.r_[True, stream[1:] != stream[:-1]]
    is_set = rows["is_set"].to_numpy() | first
    to = pl.select(pl.when(rows["is_set"]).then(rows["to"])).to_series()
    by = np.where(is_set, 0, rows["by"].fill_null(0).to_numpy())
    unknown = np.cumsum(np.where(is_set, 0, rows["by"].is_null().to_numpy()))
    anchor = np.maximum.accumulate(np.where(is_set, np.arange(stream.size), 0))
    moved_bytes, moved_bytes_float = np.cumsum(by), np.cumsum(by.astype(np.float64))
    after = to.fill_null(0).to_numpy()[anchor] + moved_bytes - moved_bytes[anchor]
    # The float sum detects an overflow of the integer sum. A seek to before the file's start fails.
    overflow_count = np.cumsum((after < 0) | (np.abs(moved_bytes_float - moved_bytes_float[anchor]) > _MAX_BYTES))
    overflow_count_before = np.r_[0, overflow_count[:-1]][anchor]
    is_known_after = (
        to.is_not_null().to_numpy()[anchor] & (unknown == unknown[anchor]) & (overflow_count == overflow_count_before)
    )
    before, is_known = np.r_[0, after[:-1]], np.r_[False, is_known_after[:-1]] & ~first
    return pl.select(pl.when(pl.Series(is_known)).then(pl.Series(before))).to_series().alias("pointer_bytes")


def _holders() -> pl.Expr:
    """Return an upper bound for the number of descriptors of the file that the process has after the step.

    Failed opens count, too, since they cannot be recognized. After a descriptor was copied, a close may leave the file
    open, so the next open may be a second one.
    """
    step = pl.when(pl.col("operation") == "open").then(1).when(pl.col("operation") == "close").then(-1).otherwise(0)
    sum_ = step.cum_sum()
    open_count = sum_ - pl.min_horizontal(sum_.cum_min(), pl.lit(0))
    is_reopened = (pl.col("operation") == "open") & ((pl.col("operation") == "open").cum_sum() > 1)
    copied = (is_reopened & (pl.col("copies") > 0)).cast(pl.Int64).cum_max()
    return (open_count + copied).over("stream")


def _appends() -> pl.Expr:
    """Test whether the process's writes may go to the end of the file."""
    flags = pl.col("flags").cast(pl.Int64, strict=False)
    is_number = pl.col("pointer") == "descriptor"
    by_flags = pl.when(is_number).then((flags & _O_APPEND) != 0).otherwise(pl.col("flags").str.starts_with("a"))
    open_appends = pl.when(pl.col("flags_at").is_null()).then(False).otherwise(by_flags.fill_null(True))
    may_append = (
        pl.when(pl.col("operation") == "open")
        .then(open_appends)
        .when((pl.col("operation") == "control") & (pl.col("count") == _F_SETFL))
        .then(((flags & _O_APPEND) != 0).fill_null(True))
    )
    return may_append.forward_fill().over("stream").fill_null(False)


def _posix_offsets(rows: pl.DataFrame) -> pl.DataFrame:
    """Add `offset_bytes` to the sorted POSIX calls of a stream."""
    operation, moves = pl.col("operation"), pl.col("pointer").is_in(["descriptor", "stream"])
    route = pl.when(moves).then(pl.col("pointer"))
    # A buffered stream reads ahead and writes late, so its position differs from that of its descriptor.
    strays = moves & (operation != "open") & (route != route.forward_fill().shift().over("stream"))
    tracked = rows.with_columns(holders=_holders(), appends=_appends() & (operation == "write"), strays=strays)
    max_holders = pl.max_horizontal("holders", pl.col("holders").shift().over("stream"))
    marked = tracked.with_columns(
        doubtful=(max_holders > 1) | pl.col("strays").fill_null(False) | pl.col("name").is_null()
    )
    is_place = (pl.col("whence") == "0") & pl.col("offset").is_between(0, _MAX_BYTES)
    anchored = (moves & (operation == "open")) | ((operation == "seek") & pl.col("whence").ne_missing("1"))
    steps = marked.with_columns(
        is_set=anchored | pl.col("doubtful") | (pl.col("appends") & moves),
        to=pl.when(pl.col("doubtful"))
        .then(None)
        .when(operation == "open")
        .then(0)
        .when((operation == "seek") & is_place)
        .then("offset"),
        by=pl.when(~moves).then(0).when(operation == "seek").then("offset").otherwise("request_bytes"),
    )
    implied = pl.when(~pl.col("doubtful") & moves).then("pointer_bytes")
    offset = pl.when((pl.col("pointer") == "explicit") & (pl.col("offset") >= 0)).then("offset").otherwise(implied)
    # On Linux, even `pwrite` appends to a file that is open for appending.
    placed = steps.with_columns(track_pointers(steps)).with_columns(
        offset_bytes=pl.when(~pl.col("appends")).then(offset)
    )
    return placed.select(*rows.columns, "offset_bytes")


def _views() -> list[pl.Expr]:
    """Return the start of the handle's view in the file, and the view's unit size; NULL if the view may have gaps."""
    unit = pl.col("type").replace_strict(TYPE_BYTES, default=None, return_dtype=pl.Int64)
    is_plain = unit.is_not_null() & (pl.col("flags") == pl.col("type")) & pl.col("offset").is_between(0, _MAX_BYTES)
    is_view, is_open = pl.col("operation") == "view", pl.col("operation") == "open"
    views = {
        "view_bytes": pl.when(is_view & is_plain).then("offset").when(is_view).then(-1).when(is_open).then(0),
        "unit_bytes": pl.when(is_view & is_plain).then(unit).when(is_view).then(-1).when(is_open).then(1),
    }
    filled = {name: part.forward_fill().over("stream") for name, part in views.items()}
    return [pl.when(part >= 0).then(part).alias(name) for name, part in filled.items()]


def _mpi_offsets(rows: pl.DataFrame) -> pl.DataFrame:
    """Add `offset_bytes` and the file's `path` to the sorted MPI-IO calls of a handle."""
    operation, moves = pl.col("operation"), pl.col("pointer") == "individual"
    open_appends = pl.when(operation == "open").then(pl.col("path").fill_null("")).forward_fill().over("stream")
    is_known = pl.col("name").is_not_null()
    viewed = rows.with_columns(*_views(), path=pl.when(is_known & (open_appends != "")).then(open_appends))
    is_far = pl.col("offset").cast(pl.Float64).abs() * pl.col("unit_bytes").cast(pl.Float64) > _MAX_BYTES
    distance = pl.when(~is_far).then(pl.col("offset") * pl.col("unit_bytes"))
    place = pl.when(pl.col("offset") >= 0).then(distance + pl.col("view_bytes"))
    at_end = (pl.col("flags").cast(pl.Int64, strict=False) & _MPI_MODE_APPEND) != 0
    steps = viewed.with_columns(
        is_set=~is_known
        | operation.is_in(["open", "view"])
        | (operation == "seek") & moves & pl.col("whence").ne_missing("MPI_SEEK_CUR"),
        to=pl.when(~is_known)
        .then(None)
        .when(operation == "open")
        .then(pl.when(~at_end).then(0))
        .when(operation == "view")
        .then("view_bytes")
        .when((operation == "seek") & (pl.col("whence") == "MPI_SEEK_SET"))
        .then(place),
        by=pl.when(~moves).then(0).when(operation == "seek").then(distance).otherwise("request_bytes"),
    )
    placed = steps.with_columns(track_pointers(steps)).with_columns(
        offset_bytes=pl.when(is_known & (pl.col("pointer") == "explicit")).then(place).when(moves).then("pointer_bytes")
    )
    return placed.select(*rows.columns, "offset_bytes")


class Requests:
    """Collects requests, files and sums of a trace, process by process."""

    def __init__(self) -> None:
        self._numbers: dict[str | None, int] = {}
        self._rows = traced.Numbering()
        self._records: list[pl.DataFrame] = []

    def add(self, calls: pl.DataFrame) -> Iterator[Batch]:
        """Process all calls of one or more processes, sorted by rank and call; yield rows and rejects."""
        placed = _add_offsets(_file_calls(calls)).filter(pl.col("operation") != "copy")
        rows = self._add_file_numbers(placed.filter(~pl.col("is_malformed")))
        self._records.append(_aggregate(rows.filter(~pl.col("is_nested"))))
        moves = pl.col("operation").is_in(["read", "write"])
        of_call = ("rank", "file_number", "start_s", "end_s", "is_nested", pl.col("layer").alias("module"))
        request_columns = ("offset_bytes", "request_bytes", "is_async", pl.col("operation").alias("direction"))
        yield from self._rows.rows(TRACE_REQUESTS, rows.filter(moves).select(*of_call, *request_columns))
        # calls that set a view or a descriptor's flags count as other operations
        operation = pl.col("operation").replace(dict.fromkeys(["view", "control"], "other")).alias("operation")
        yield from self._rows.rows(TRACE_METADATA, rows.filter(~moves).select(*of_call, operation))
        yield from reject_batches(_refuse_malformed(placed.filter("is_malformed")))

    def finish(self) -> Iterator[Batch]:
        """Yield the accessed files, and the sums per process and file."""
        yield from traced.build_file_batches(self._numbers)
        records = pl.concat(self._records) if self._records else pl.DataFrame()
        for part in records.iter_slices(traced.BATCH_ROWS):
            if not part.is_empty():
                yield traced.build_batch(TRACE_RECORDS, part.rename({"layer": "module"}).to_dict())

    def _add_file_numbers(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Add `file_number`, numbered in order of first occurrence."""
        paths = rows["path"].unique(maintain_order=True)
        for path in paths.to_list():
            self._numbers.setdefault(path, len(self._numbers))
        numbers = pl.DataFrame(
            {"path": paths, "file_number": pl.Series([self._numbers[path] for path in paths.to_list()], dtype=pl.Int64)}
        )
        return rows.join(numbers, on="path", how="left", nulls_equal=True, maintain_order="left")


def _aggregate(rows: pl.DataFrame) -> pl.DataFrame:
    """Aggregate the calls of one process to one file."""
    calls = rows.with_columns(
        count=pl.lit(1, pl.Int64),
        bytes="request_bytes",
        time_s=(pl.col("end_s") - pl.col("start_s")).clip(lower_bound=0),
    )
    together = (pl.col("operation") == "open") & (pl.col("type") != "MPI_COMM_SELF")
    return calls.group_by("layer", "file_number", "rank", maintain_order=True).agg(
        *traced.record_columns(),
        pl.when(pl.col("layer").first() == "MPIIO").then(together.sum()).alias("collective_open_count"),
    )


def _add_offsets(rows: pl.DataFrame) -> pl.DataFrame:
    """Add offsets and paths, and restore the original order of the calls."""
    ordered = rows.with_row_index("place").sort("stream", maintain_order=True)
    posix = ordered.filter(pl.col("layer") == "POSIX").with_columns(path=pl.col("name"))
    mpi = ordered.filter(pl.col("layer") == "MPIIO")
    return pl.concat([_posix_offsets(posix), _mpi_offsets(mpi)]).sort("place")


def _refuse_malformed(rows: pl.DataFrame) -> pl.DataFrame:
    """Convert malformed requests to refused rows; `line` is the ordinal number of the process's call."""
    return rows.select(
        line=pl.col("call") + 1,
        reason=pl.format("The arguments of a request of rank {} lack its file or its bytes.", "rank"),
        remedy=pl.lit("Trace again with Recorder 2.5; the request is not counted."),
        raw="raw",
    )
