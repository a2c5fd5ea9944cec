"""Read and write compressed traces as Parquet files, one row per node, in a documented format for other tools.

The format is declared here, with the meaning of each column and field; its page in `docs/` is generated from it.
`iosig.transforms.traces.frames`, which this package does not import, builds and interprets the rows.
"""

from __future__ import annotations

import contextlib
import json
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from iosig.warehouse.engine_paths import utf8_path
from iosig.warehouse.errors import InputRefused, UsageError
from iosig.warehouse.placing import atomic_write

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import polars as pl
    import pyarrow as pa

#: value of the file's metadata key `iosig.format`
FORMAT = "iosig compressed trace"
#: version of the format; increases if any column is added, dropped or redefined
VERSION = 1
#: maximum size of a file's content [B], some 30 million irregular numbers
MAX_BYTES = 1 << 28

_PREFIX = "iosig."
#: address space limit of the process that reads a file [B]
_MAX_READER_BYTES = 1 << 32
_MAX_PROCESSES = (1 << 31) - 1
#: maximum size of a small file [B]; zstd level of small files, which would take minutes on large ones; level of large
#: files
_SMALL_BYTES, _SMALL_LEVEL, _LARGE_LEVEL = 1 << 23, 19, 3
_REMEDY = "Write the file again with iosig compress or iosig extrapolate."


# ---- the form


@dataclass(frozen=True, slots=True)
class Field:
    """A quantity with its element type, nesting depth of lists, and meaning."""

    name: str
    kind: Literal["int", "real", "text"] | Structure
    doc: str
    unit: str | None = None
    lists: int = 0

    @property
    def type_words(self) -> str:
        """Format the type in DuckDB's notation, with the names of structures."""
        plain = {"int": "BIGINT", "real": "DOUBLE", "text": "VARCHAR"}
        return (self.kind.name if isinstance(self.kind, Structure) else plain[self.kind]) + "[]" * self.lists


@dataclass(frozen=True, slots=True)
class Structure:
    """A reusable group of fields; its name is used only in the documentation."""

    name: str
    doc: str
    fields: tuple[Field, ...]


_PROGRESSION_FIELDS = (
    Field("start", "int", "the first number"),
    Field("strides", "int", "increment of the number per step along each dimension", lists=1),
    Field("counts", "int", "size of each dimension, the last one running fastest", lists=1),
)
PROGRESSION = Structure(
    "progression",
    "The numbers `start + Σ strides[d] * i[d]` for all `0 <= i[d] < counts[d]`, in the order of a nested loop over "
    "`i[1]`, `i[2]`, …; without dimensions, the one number `start`. Rank lists rise.",
    _PROGRESSION_FIELDS,
)
STRETCH = Structure(
    "stretch",
    (
        "Sequence of numbers: a progression, or irregular numbers in `listed`, with `start` NULL. The listed numbers "
        "are repeated for each number of the progression of `strides` and `counts` from 0, which is added to them. A "
        "list of stretches is concatenated."
    ),
    (*_PROGRESSION_FIELDS, Field("listed", "int", "the numbers listed; NULL in a progression", lists=1)),
)
SHARE = Structure(
    "share",
    "Values of some ranks of the class. Each rank of the class is in one share. The rank at index `i` of `ranks` has, "
    "at its t-th execution of the node, the value `values[t] + Σ shifts[d][t] * i[d]`.",
    (
        Field("ranks", PROGRESSION, "the ranks"),
        Field(
            "shifts", STRETCH, "for each dimension of `ranks`, the increment of each value per step along it", lists=2
        ),
        Field("values", STRETCH, "values of the first rank, one per execution", lists=1),
    ),
)
SLOT = Structure(
    "slot",
    "A number in the arguments: 0 or more, except for the two of an MPI_Status, `[source_tag]`, which can be negative.",
    (
        Field("width", "int", "minimum number of characters, padded with zeros on the left"),
        Field("shares", SHARE, "its values", lists=1),
    ),
)
_SPREAD_FIELDS = (
    Field("count", "int", "how many times"),
    Field("minimum_s", "real", "the shortest", "s"),
    Field("mean_s", "real", "the mean", "s"),
    Field("maximum_s", "real", "the longest", "s"),
)
BIN = Structure("bin", "A part of a histogram.", _SPREAD_FIELDS)
TIMES = Structure(
    "times",
    "Times of all ranks and executions, as statistics and as a histogram.",
    (
        *_SPREAD_FIELDS,
        Field("variance_s2", "real", "their variance", "s²"),
        Field("bins", BIN, "parts in ascending order of time, with counts as equal as possible", lists=1),
    ),
)
GAP = Structure(
    "gap",
    "Times between the call and its predecessor.",
    (
        Field("previous", "int", "node of the call executed before; -1 for the first call of the rank"),
        Field(
            "times",
            TIMES,
            "from the end of the previous call of the same level, or from the start of the enclosing one",
        ),
    ),
)

#: columns of the format, in order
COLUMNS = (
    Field("rank_class", "int", "class of ranks with the same calls except for numbers in them, from 0"),
    Field("node", "int", "number of the row's call or loop in its class, from 0; a loop precedes its body"),
    Field("parent", "int", "node of the innermost enclosing loop; NULL outside of loops"),
    Field("kind", "text", "`ranks` (the first row of a class), `loop` or `call`"),
    Field("ranks", PROGRESSION, "of a class: its ranks, ascending", lists=1),
    Field("iterations", SHARE, "of a loop: number of iterations of each execution", lists=1),
    Field("module", "text", "of a call: `POSIX`, `MPIIO`, `MPI`, `HDF5` or `FTRACE`"),
    Field("function", "text", "of a call: the function called"),
    Field("level", "int", "of a call: number of enclosing traced calls"),
    Field("texts", "text", "of a call: texts before, between and after the slots of its arguments", lists=1),
    Field("slots", SLOT, "of a call: numbers in its arguments, one fewer than the texts", lists=1),
    Field("gaps", GAP, "of a call: times since the previous call, by that call", lists=1),
    Field("durations", TIMES, "of a call: durations"),
)


def structures() -> tuple[Structure, ...]:
    """List the structures in the columns, each before the structures that it contains."""
    by_name: dict[str, Structure] = {}

    def visit(fields: tuple[Field, ...]) -> None:
        for field in fields:
            if isinstance(field.kind, Structure):
                by_name.pop(field.kind.name, None)
                by_name[field.kind.name] = field.kind
                visit(field.kind.fields)

    visit(COLUMNS)
    return tuple(by_name.values())


def schema() -> pa.Schema:
    """Build the Arrow schema of the columns, with docs and units in their metadata."""
    import pyarrow as pa

    return pa.schema(
        [_arrow(field, {"doc": field.doc, **({"unit": field.unit} if field.unit else {})}) for field in COLUMNS]
    )


def _arrow(field: Field, metadata: dict[str, str] | None = None) -> pa.Field:
    import pyarrow as pa

    if isinstance(field.kind, Structure):
        kind = pa.struct([_arrow(part) for part in field.kind.fields])
    else:
        kind = {"int": pa.int64(), "real": pa.float64(), "text": pa.string()}[field.kind]
    for _ in range(field.lists):
        kind = pa.list_(pa.field("element", kind))
    return pa.field(field.name, kind, metadata=metadata)


# ---- documentation page

#: markers around the generated tables of the page
_MARKS = (
    "<!-- tables: made of compressed_traces.py in warehouse/sources/extrapolations -->\n",
    "<!-- /tables -->\n",
)


def render_page(text: str) -> str:
    """Regenerate the tables between the markers of the page about the format.

    Raises ValueError if the text lacks the markers.
    """
    before, begin, remainder = text.partition(_MARKS[0])
    _, end, after = remainder.partition(_MARKS[1])
    if not begin or not end:
        raise ValueError("The page has no markers for its tables.")
    blocks = [_markdown("column", COLUMNS)]
    for structure in structures():
        blocks += [f"### {structure.name}", structure.doc, _markdown("field", structure.fields)]
    return before + begin + "\n" + "\n\n".join(blocks) + "\n\n" + end + after


def _markdown(heading: str, fields: tuple[Field, ...]) -> str:
    rows = [(heading, "type", "meaning"), ("---", "---", "---")]
    rows += [
        (f"`{field.name}`", f"`{field.type_words}`", field.doc + f" [{field.unit}]" * bool(field.unit))
        for field in fields
    ]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


# ---- writing


def write(path: Path, frame: pl.DataFrame, metadata: Mapping[str, str]) -> None:
    """Write a frame with the columns `COLUMNS` atomically to a file, with `metadata` in the file's metadata.

    metadata: must contain `process_count`, an integer. Before writing, raises UsageError if the frame is too large for
    the format, and ValueError if it has other columns.
    """
    import pyarrow.parquet as pq

    _check_metadata(metadata)
    rows = frame.to_arrow()
    if rows.column_names != [column.name for column in COLUMNS]:
        raise ValueError(f"The columns {', '.join(rows.column_names)} do not match a compressed trace.")
    rows = rows.cast(schema())
    if rows.nbytes > MAX_BYTES:
        raise UsageError(
            f"Most of the trace is irregular: its compressed form would take {rows.nbytes / 1e6:,.0f} MB, and more "
            f"than {MAX_BYTES / 1e6:,.0f} MB are not read again. Trace a shorter run."
        )
    fields = {"format": FORMAT, "version": str(VERSION), **metadata}
    fields["checksum"] = _checksum(fields)
    rows = rows.replace_schema_metadata({f"{_PREFIX}{key}": text for key, text in fields.items()})
    with atomic_write(path.absolute()) as temporary:
        pq.write_table(
            rows,
            temporary,
            compression="zstd",
            compression_level=_SMALL_LEVEL if rows.nbytes < _SMALL_BYTES else _LARGE_LEVEL,
            use_dictionary=False,
            # Statistics would take a third of the file, and small files gain nothing from skipping rows.
            write_statistics=False,
            write_page_checksum=True,
        )


def _check_metadata(metadata: Mapping[str, str]) -> None:
    reserved = {"format", "version", "checksum"} & set(metadata)
    if reserved:
        raise ValueError(f"The metadata {', '.join(sorted(reserved))} are reserved.")
    if not _is_process_count(metadata.get("process_count", "")):
        raise ValueError(f"A compressed trace needs process_count, not {metadata.get('process_count')!r}.")


def _checksum(fields: Mapping[str, str]) -> str:
    lines = "".join(f"{_PREFIX}{key}={fields[key]}\n" for key in sorted(fields))
    return f"{zlib.crc32(lines.encode()):08x}"


def _is_process_count(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 12 and 1 <= int(text) <= _MAX_PROCESSES


# ---- reading


def is_compressed_trace(path: Path) -> bool:
    """Recognize a compressed trace by its footer alone."""
    with contextlib.suppress(OSError):
        from iosig.warehouse.sources.files.opening import parquet_footer

        return path.is_file() and FORMAT.encode() in parquet_footer(path)
    return False


def read(path: Path) -> tuple[pl.DataFrame, dict[str, str]]:
    """Read the rows of a file in the format's columns, and its metadata (`process_count` and others).

    Raises InputRefused for anything but a complete file in this format and version. The content of rows is not checked.
    """
    from iosig.warehouse.sources.files.child import arrays_from_child

    _check_file(path)
    content: dict[str, npt.NDArray[Any]] = {}
    for arrays in arrays_from_child(decode, str(path.absolute())):
        content.update(arrays)
    import polars as pl

    try:
        frame = pl.read_ipc_stream(content["rows"].tobytes())
    # A panic of the reader is not an `Exception`, but it is caused by the file as well.
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise InputRefused("The rows of the compressed trace cannot be converted.", _REMEDY) from error
    return frame, json.loads(content["metadata"].tobytes())


def _check_file(path: Path) -> None:
    from iosig.warehouse.sources.files.opening import parquet_footer

    if not path.is_file():
        raise InputRefused(f"{path} is not a file.", "Pass the path of a compressed trace.")
    try:
        size, footer = path.stat().st_size, parquet_footer(path)
    except OSError as error:
        raise InputRefused(f"{path} cannot be read: {error.strerror}.", "Check its permissions.") from error
    if size > MAX_BYTES:
        raise InputRefused(f"{path} is larger than any compressed trace.", _REMEDY)
    if not footer:
        raise InputRefused(f"{path} is not a Parquet file, or is truncated.", _REMEDY)
    if FORMAT.encode() not in footer:
        raise InputRefused(f"{path} is Parquet, but not a compressed trace.", _REMEDY)


def decode(path: str) -> Iterator[dict[str, npt.NDArray[np.uint8]]]:
    """Yield the rows of a file as an Arrow stream, and its metadata as JSON; runs in a child process.

    The library trusts the sizes in a hostile file, so the process's memory is limited.
    """
    import resource

    import numpy as np
    import pyarrow as pa

    resource.setrlimit(resource.RLIMIT_AS, (_MAX_READER_BYTES, _MAX_READER_BYTES))
    pa.set_memory_pool(pa.system_memory_pool())
    try:
        rows, metadata = _table(path)
    except (pa.ArrowException, OSError, ValueError) as error:
        message = (str(error).splitlines() or ["damaged"])[0]
        raise InputRefused(f"The compressed trace is damaged: {message}.", _REMEDY) from error
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_table(rows)
    yield {
        "rows": np.frombuffer(sink.getvalue(), np.uint8),
        "metadata": np.frombuffer(json.dumps(metadata).encode(), np.uint8),
    }


def _table(path: str) -> tuple[pa.Table, dict[str, str]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    with pq.ParquetFile(utf8_path(path), page_checksum_verification=True) as file:
        footer = file.metadata
        metadata = _own_metadata(footer.metadata or {})
        if file.schema_arrow.remove_metadata() != schema().remove_metadata():
            raise InputRefused("The compressed trace has the wrong columns.", _REMEDY)
        groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
        if sum(group.total_byte_size for group in groups) > MAX_BYTES:
            raise InputRefused("The compressed trace exceeds the maximum size that iosig writes.", _REMEDY)
        rows = file.read(use_threads=False)
    rows.validate(full=True)
    if rows.nbytes > MAX_BYTES:
        raise InputRefused("The compressed trace exceeds the maximum size that iosig writes.", _REMEDY)
    # Drop the file's own column metadata, which are not used and may not be UTF-8.
    return rows.cast(pa.schema([field.remove_metadata() for field in schema()])), metadata


def _own_metadata(file_metadata: Mapping[bytes, bytes]) -> dict[str, str]:
    """Extract the metadata of a trace; refuse another format or version, or a missing process count."""
    prefix = _PREFIX.encode()
    fields = {
        key.removeprefix(prefix).decode(): text.decode()
        for key, text in file_metadata.items()
        if key.startswith(prefix)
    }
    checksum = fields.pop("checksum", None)
    if fields.get("format") != FORMAT:
        raise InputRefused("The file is Parquet, but not a compressed trace.", _REMEDY)
    if checksum is not None and checksum != _checksum(fields):
        raise InputRefused("The metadata of the compressed trace are damaged.", _REMEDY)
    del fields["format"]
    version = fields.pop("version", "none")
    if version != str(VERSION):
        raise InputRefused(
            f"The compressed trace is of version {version} of its form, and this iosig reads version {VERSION}.",
            "Use the iosig that wrote it, or write it again.",
        )
    if not _is_process_count(fields.get("process_count", "")):
        raise InputRefused("The compressed trace has no process count.", _REMEDY)
    return fields
