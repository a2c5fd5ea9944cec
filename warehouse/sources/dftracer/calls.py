"""Classify DFTracer's events as reads and writes with their bytes, other calls, and metadata about the run.

The functions and their logged arguments are those of DFTracer 1.0 to 3.0 (src/dftracer/core/brahma/{posix,stdio,
mpiio}.cpp) and of its predecessor, the DLIO profiler. POSIX calls log their return value, the number of transferred
bytes; `fread` and `fwrite` return a number of items and log the item size. MPI-IO logs an error code and no bytes, so
only the resulting reads and writes of the layer below count.
"""

from __future__ import annotations

from functools import cache

import polars as pl

from iosig.warehouse.sources.dftracer.lines import NAMING, NUMBERS, OF_KIND, SIZES
from iosig.warehouse.sources.rows import times as job_times
from iosig.warehouse.sources.rows.delimited import RAW
from iosig.warehouse.sources.rows.faults import Fault, build_number_fault, sift
from iosig.warehouse.sources.rows.rejects import ParsedRows

#: I/O layers, outermost first; the program's own functions are above all of them
LAYERS = ("MPIIO", "STDIO", "POSIX")
OPERATIONS = ("read", "write", "open", "close", "seek", "stat", "sync", "other")
#: layer code of the program's own functions
OWN = -1
#: maximum plausible size or offset; sums of larger values could overflow 64 bits
MAX_BYTES = 1 << 60
#: earliest plausible time [us since 1970], in 2001; smaller values have another unit
_EARLIEST_US = 10**15
_LATEST_US = int(job_times.LATEST.timestamp() * 1_000_000)

#: category of the tracer's metadata about the run; name of the MPI rank in these metadata
TRACER, RANK = "dftracer", "rank"
COMPLETE, METADATA = "complete", "metadata"
_PHASES = {"X": COMPLETE, "1": COMPLETE, "M": METADATA, "4": METADATA}
#: event phases that are not calls: counters of a separate service, and instants without a duration
_IGNORED = ("C", "2", "i", "I")
_FOLDED = ("A", "3")

_READS = {
    "ret": "read pread pread64 readv preadv preadv64 preadv2 __read __read_chk __pread_chk __pread64_chk fscanf",
    "items": "fread fread_unlocked",
    "chars": "fgets fgets_unlocked",
    "one": "fgetc getc getc_unlocked",
    "four": "getw",
}
_WRITES = {
    "ret": "write pwrite pwrite64 writev pwritev pwritev64 pwritev2 __write sendfile sendfile64 fprintf vfprintf",
    "items": "fwrite fwrite_unlocked",
    "chars": "fputs fputs_unlocked",
    "one": "fputc putc putc_unlocked",
    "four": "putw",
}
_METADATA = {
    "open": "open open64 openat openat64 creat creat64 fopen fopen64 freopen freopen64 fdopen opendir MPI_File_open",
    "close": "close fclose closedir MPI_File_close",
    "seek": "lseek lseek64 llseek fseek fseeko fseeko64 fsetpos rewind MPI_File_seek MPI_File_seek_shared",
    "stat": "stat stat64 lstat lstat64 fstat fstat64 fstatat fstatat64 newfstatat statx __xstat __xstat64 __lxstat "
    "__lxstat64 __fxstat __fxstat64 __fxstatat __fxstatat64",
    "sync": "fsync fdatasync sync syncfs sync_file_range msync fflush MPI_File_sync",
}
#: functions in these layers that access no file
_WITHOUT_FILE = (
    *("fork", "vfork", "execl", "execlp", "execle", "execv", "execvp", "execvpe", "execve", "wait", "waitpid", "exit"),
    *("_exit", "umask", "clearerr", "feof", "ferror", "flockfile", "funlockfile", "ftrylockfile"),
)


@cache
def _functions() -> pl.DataFrame:
    moving = [
        (name, operation, rule)
        for operation, rules in (("read", _READS), ("write", _WRITES))
        for rule, names in rules.items()
        for name in names.split()
    ]
    metadata = [(name, operation, "none") for operation, names in _METADATA.items() for name in names.split()]
    # MPI-IO transfers have no bytes in a trace, so they count neither as requests nor as metadata
    hidden = [(name, None, "hidden") for name in _mpi_transfers()]
    schema = {"name": pl.String, "operation": pl.String, "rule": pl.String}
    return pl.DataFrame([*moving, *metadata, *hidden], schema=schema, orient="row")


def _mpi_transfers() -> list[str]:
    variants = ("", "_all", "_at", "_at_all", "_shared", "_ordered")
    waits = [
        f"MPI_File_{operation}{variant}" for operation in ("read", "write", "iread", "iwrite") for variant in variants
    ]
    splits = ("_all", "_at_all", "_ordered")
    return waits + [
        f"MPI_File_{operation}{variant}_{end}"
        for operation in ("read", "write")
        for variant in splits
        for end in ("begin", "end")
    ]


# ---- parsing


def parse_cells(cells: pl.DataFrame) -> ParsedRows:
    """Convert text cells to typed events and metadata, and refuse malformed lines.

    Calls of the program's own functions that transfer no bytes are kept, because they are counted.
    """
    kinds = cells.select(OF_KIND).unique(maintain_order=True).with_row_index("kind")
    cells = cells.join(kinds, on=OF_KIND, how="left", nulls_equal=True, maintain_order="left").drop(OF_KIND)
    meanings = classify_kinds(kinds)
    rows = cells.drop("kind").hstack(meanings[cells["kind"]]).filter(~pl.col("is_ignored"))
    texts = (*NUMBERS, *SIZES)
    raw_columns = {f"given_{name}": pl.col(name) for name in texts} if RAW in cells.columns else {}
    numbered = rows.with_columns(**raw_columns, **{name: pl.col(name).cast(pl.Int64, strict=False) for name in texts})
    is_unparsed = {name: rows[name].is_not_null() & numbered[name].is_null() for name in texts}
    flags = {
        f"lost_{kind}": pl.any_horizontal(is_unparsed[name] for name in names)
        for kind, names in (("number", NUMBERS), ("ret", ("ret",)), ("size", SIZES))
    }
    # a function of the program itself transfers bytes only if it logs a number
    is_mute = (pl.col("layer") == OWN) & pl.col("ret").is_null() & pl.col("size").is_null()
    operation = pl.when(~is_mute).then("operation")
    return sift(numbered.with_columns(**flags, operation=operation), _faults(bool(raw_columns)))


def drop_raw_columns(rows: pl.DataFrame) -> pl.DataFrame:
    """Drop the raw line and unparsed numbers from rows that were read one by one; rows from DuckDB lack them."""
    return rows.drop(RAW, *(f"given_{name}" for name in (*NUMBERS, *SIZES)))


def classify_kinds(kinds: pl.DataFrame) -> pl.DataFrame:
    """Classify each distinct combination of the columns OF_KIND once, since there are few.

    The result has `name`, `phase`, `layer`, `operation`, `rule`, `called` (the function) and flags. operation: read,
    write or a metadata operation; NULL for a call without a file.
    """
    layers = {name: place for place, name in enumerate(LAYERS)}
    matched = kinds.join(_functions(), on="name", how="left", maintain_order="left").with_columns(
        phase=pl.col("ph").replace_strict(_PHASES, default=None, return_dtype=pl.String),
        layer=pl.col("cat").replace_strict(layers, default=OWN, return_dtype=pl.Int8),
    )
    is_own, moves = pl.col("layer") == OWN, pl.col("operation").is_in(["read", "write"])
    is_of_file = ~pl.col("name").is_in(_WITHOUT_FILE) & (pl.col("rule") != "hidden").fill_null(True)
    other_operation = pl.when(is_of_file).then(pl.coalesce("operation", pl.lit("other")))
    operation = pl.when(is_own).then(pl.when(moves).then("operation")).otherwise(other_operation)
    return matched.select(
        pl.col("name").cast(pl.Categorical),
        pl.format("{} {} {}", "layer", operation.fill_null(""), "name").cast(pl.Categorical).alias("called"),
        pl.col("phase").cast(pl.Enum([COMPLETE, METADATA])),
        "layer",
        pl.when(pl.col("phase") == COMPLETE).then(operation).cast(pl.Enum(OPERATIONS)).alias("operation"),
        pl.col("rule").cast(pl.Enum([*_READS, "none", "hidden"])),
        pl.col("ph").is_in(_IGNORED).fill_null(False).alias("is_ignored"),
        pl.col("ph").is_in(_FOLDED).fill_null(False).alias("is_folded"),
        (pl.col("cat") == TRACER).fill_null(False).alias("is_of_tracer"),
    )


@cache
def _faults(has_given: bool) -> list[Fault]:
    """Build the checks for all lines."""
    is_event, moves = pl.col("phase") == COMPLETE, pl.col("operation").is_in(["read", "write"])
    is_returning = is_event & (pl.col("layer") != OWN)
    write = "Trace again: DFTracer writes a number here."
    if has_given:
        numbers = [build_number_fault(f"given_{name}", name) for name in NUMBERS]
        sizes = [
            Fault((moves | is_returning if name == "ret" else moves) & fault.broken, fault.reason, fault.remedy)
            for name, fault in ((name, build_number_fault(f"given_{name}", name)) for name in SIZES)
        ]
    else:
        numbers = [Fault(pl.col("lost_number"), "Something is not a number.", write)]
        sizes = [
            Fault((moves & pl.col("lost_size")) | (is_returning & pl.col("lost_ret")), "A size is not a number.", write)
        ]
    ended = pl.col("ts").cast(pl.Float64) + pl.col("dur").cast(pl.Float64)
    return [
        Fault(
            pl.col("is_folded"),
            "The line aggregates several calls without their times.",
            "Trace with DFTRACER_ENABLE_AGGREGATION=0.",
        ),
        Fault(
            pl.col("phase").is_null(),
            "The line's `ph` is not one of DFTracer's record types.",
            "Check the program that wrote it.",
        ),
        *numbers,
        *sizes,
        *(Fault(is_event & pl.col(name).is_null(), f"The event has no `{name}`.", write) for name in NUMBERS),
        Fault(
            is_event & ~pl.col("ts").is_between(_EARLIEST_US, _LATEST_US),
            "Its time is not in microseconds since 1970, from 2001 on.",
            "Trace with times in microseconds.",
        ),
        Fault(
            is_event & ((pl.col("dur") < 0) | (ended > _LATEST_US)),
            "Its duration is negative, or it ends after 2261.",
            "Trace again.",
        ),
        *_naming_faults(),
        Fault(
            moves & pl.any_horizontal(pl.col(name) > MAX_BYTES for name in SIZES),
            "It has more bytes than any file.",
            "Trace again.",
        ),
        Fault(
            moves & pl.any_horizontal(pl.col(name) < 0 for name in SIZES if name != "ret"),
            "It has a negative number of bytes.",
            "Trace again.",
        ),
        Fault(
            moves & _lacks_return_value(),
            "It has the requested bytes, but not the bytes moved.",
            "Trace again: DFTracer writes the return value of each read and write.",
        ),
    ]


def _lacks_return_value() -> pl.Expr:
    """Test whether a call lacks its return value; only traces with metadata have return values.

    The program's own functions are exempt, and so are `fgets` and `fputs`, which log lengths.
    """
    matched = pl.any_horizontal(
        pl.col("host", "host_hash", "path", "file_hash", "count", "size", "offset").is_not_null()
    )
    lacks = pl.col("ret").is_null() | ((pl.col("rule") == "items") & pl.col("size").is_null())
    return (pl.col("layer") != OWN) & (pl.col("rule") != "chars") & matched & lacks


def _naming_faults() -> list[Fault]:
    """Build the checks for lines that map a hash to a name, or a process to its rank."""
    is_metadata = (pl.col("phase") == METADATA) & pl.col("is_of_tracer")
    is_rank = is_metadata & (pl.col("name") == "PR") & (pl.col("arg_name") == RANK)
    return [
        Fault(
            is_metadata & pl.col("name").is_in(NAMING) & (pl.col("arg_name").is_null() | pl.col("value").is_null()),
            "It lacks a hash, or the hash's name.",
            "Trace again: without it, files or hosts are unknown.",
        ),
        Fault(
            is_rank & ~pl.when(is_rank).then(pl.col("value").fill_null("")).str.contains(r"^[0-9]{1,9}$"),
            "The rank is not a number.",
            "Trace again.",
        ),
    ]


@cache
def request_bytes() -> pl.Expr:
    """Compute the bytes that a read or write transferred; NULL if unknown, 0 for a failed call."""
    ret = pl.col("ret")
    unit = pl.when(pl.col("rule") == "items").then("size").otherwise(1)
    # a trace without metadata has no lengths; `fgets` at the end of a file has none either
    chars = pl.coalesce("read_chars", "written_chars", pl.when(pl.coalesce("host", "host_hash").is_not_null()).then(0))
    by_rule = (
        pl.when(pl.col("rule") == "chars")
        .then(pl.when(ret < 0).then(0).otherwise(chars))
        .when(pl.col("rule").is_in(["one", "four"]))
        .then(
            pl.when(ret == -1)
            .then(0)
            .when(ret.is_not_null())
            .then(pl.when(pl.col("rule") == "one").then(1).otherwise(4))
        )
        .when(ret < 0)
        .then(0)
        .otherwise(_product(ret, unit))
    )
    own_bytes = pl.when(ret >= 0).then(ret).otherwise("size")
    return pl.when(pl.col("layer") == OWN).then(own_bytes).otherwise(by_rule)


def _product(count: pl.Expr, unit: pl.Expr) -> pl.Expr:
    """Multiply count and unit; NULL if the product exceeds any file size."""
    is_sound = count.cast(pl.Float64) * unit.cast(pl.Float64) <= MAX_BYTES
    return pl.when(is_sound).then(count * unit)
