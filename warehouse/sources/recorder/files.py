"""Access the files of one Recorder trace in a folder, in an archive, or as a single text file.

A trace has one of three formats. `raw`: `VERSION`, `recorder.mt` and, per rank, `.cst`, `.cfg` and `.ts`; `text`:
`<rank>.txt` from recorder2text; `parquet`: `<rank>.parquet` from recorder2parquet. All other files are ignored.
"""

from __future__ import annotations

import io
import re
import tempfile
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO, Literal, Protocol

from iosig.warehouse.errors import InputRefused

Form = Literal["raw", "text", "parquet"]

_RANK = r"(?:0|[1-9][0-9]{0,8})"
_NAMES: dict[Form, re.Pattern[str]] = {
    "raw": re.compile(rf"VERSION|recorder\.mt|ug\.mt|{_RANK}\.(?:cst|cfg|ts)"),
    # recorder2text may pad ranks with zeros.
    "text": re.compile(r"[0-9]{1,9}\.txt"),
    "parquet": re.compile(r"[0-9]{1,9}\.parquet"),
}
_LINE = re.compile(rb"[0-9]+\.[0-9]+ [0-9]+\.[0-9]+ [^ \n]* [0-9]+ [0-4] \((?: [^\n]*)? \)\r?(?:\n|$)")
_EXPORTED = (b"tstart", b"tend", b"func_id", b"args_10")

#: number of bytes at the start of a file from which a trace is recognized
_HEAD_BYTES = 1 << 16
_LINE_BYTES = 1 << 12
_MAX_SNIFFED_FILES = 8
#: maximum size of one file of a trace, which belongs to one rank [B]
MAX_FILE_BYTES = 2 << 30
#: constant part of an archive's maximum decompressed size [B]; a multiple of the compressed size is added, so that
#: decompression bombs are stopped
FREE_BYTES = 1 << 30
MAX_EXPANSION_FACTOR = 200
_MAX_MEMORY_BYTES = 64 << 20
_REMEDY = "Fetch or pack the trace again, with all of its files, and no others."


class Files(Protocol):
    """Interface to the files of a trace."""

    @property
    def names(self) -> Mapping[str, int]:
        """Map the names of the files to their sizes [B]."""

    def read(self, name: str, max_bytes: int | None = None) -> bytes:
        """Read a file, or its start; raise InputRefused if it is missing, too large or unreadable."""


@dataclass(frozen=True, slots=True)
class _InFolder:
    folder: Path
    names: Mapping[str, int]

    def read(self, name: str, max_bytes: int | None = None) -> bytes:
        _check_size(self.names, name)
        try:
            with (self.folder / name).open("rb") as file:
                return file.read(max_bytes or MAX_FILE_BYTES)
        except OSError as error:
            raise InputRefused(f"{name} cannot be read: {error.strerror}.", "Check it and its folder.") from error


@dataclass(frozen=True, slots=True)
class _InArchive:
    """Files from an archive, concatenated in an unnamed temporary file."""

    store: IO[bytes]
    places: Mapping[str, int]
    names: Mapping[str, int]

    def read(self, name: str, max_bytes: int | None = None) -> bytes:
        _check_size(self.names, name)
        self.store.seek(self.places[name])
        return self.store.read(min(self.names[name], max_bytes or MAX_FILE_BYTES))


def _check_size(names: Mapping[str, int], name: str) -> None:
    if name not in names:
        raise InputRefused(f"{name} is missing.", _REMEDY)
    if names[name] > MAX_FILE_BYTES:
        raise InputRefused(
            f"{name} has {names[name]} bytes, which exceeds the maximum of a file.", "Trace fewer calls."
        )


def find_form(names: Collection[str]) -> Form | None:
    """Recognize the form of a trace by the names of its files."""
    if "recorder.mt" in names and any(name.endswith(".cst") for name in names):
        return "raw"
    return next((form for form in ("text", "parquet") if any(map(_NAMES[form].fullmatch, names))), None)


def select_names(names: Collection[str], form: Form) -> tuple[str, ...]:
    """Select the sorted names that belong to a trace of this form."""
    return tuple(sorted(name for name in names if _NAMES[form].fullmatch(name)))


def list_trace_files(folder: Path) -> tuple[str, ...]:
    """List the files in a folder that form a trace; empty if the folder has no trace.

    Text and Parquet files may have such names by accident, so one of the first non-empty files must have the content of
    a trace.
    """
    try:
        names = [path.name for path in folder.iterdir() if path.is_file()]
        form = find_form(names)
        trace_names = select_names(names, form) if form else ()
        non_empty = (folder / name for name in trace_names if (folder / name).stat().st_size)
        return (
            trace_names if form == "raw" or any(map(_has_trace_content, islice(non_empty, _MAX_SNIFFED_FILES))) else ()
        )
    except OSError:
        return ()


def _has_trace_content(path: Path) -> bool:
    if path.suffix == ".parquet":
        return is_parquet_export(path)
    with path.open("rb") as file:
        return is_text(file.read(_HEAD_BYTES))


def is_text(start: bytes) -> bool:
    """Recognize output of recorder2text by its start."""
    return _LINE.match(start) is not None


def is_parquet_export(path: Path) -> bool:
    """Recognize Recorder's Parquet export by its columns."""
    from iosig.warehouse.sources.files.opening import parquet_footer

    footer = parquet_footer(path)
    return all(name in footer for name in _EXPORTED)


@contextmanager
def open_trace(path: Path) -> Iterator[tuple[Form, Files]]:
    """Open a trace in a folder, in a plain or compressed archive, or in a single text file."""
    from iosig.warehouse.sources.files.opening import open_decompressed, read_head, refusing_damage
    from iosig.warehouse.sources.files.tar_stream import is_tar

    if path.is_dir():
        yield _open_folder(path)
    elif is_tar(read_head(path).start):
        with tempfile.SpooledTemporaryFile(_MAX_MEMORY_BYTES) as store:
            with refusing_damage("The archive is damaged"), open_decompressed(path) as archive:
                members = _copy_members(archive, store, FREE_BYTES + MAX_EXPANSION_FACTOR * path.stat().st_size)
            yield _open_archive(store, members)
    else:
        yield "text", _SingleFile(path)


def _open_folder(path: Path) -> tuple[Form, Files]:
    names = list_trace_files(path)
    form = find_form(names)
    if form is None:
        raise InputRefused("The folder has no Recorder trace.", _REMEDY)
    return form, _InFolder(path, {name: (path / name).stat().st_size for name in names})


#: folder -> file name -> offset and size
_Members = dict[str, dict[str, tuple[int, int]]]


def _copy_members(archive: IO[bytes], store: IO[bytes], max_bytes: int) -> _Members:
    """Copy the files in an archive that may belong to a trace; return their offsets and sizes."""
    from iosig.warehouse.sources.files.tar_stream import TarStream

    members: _Members = {}
    stream = TarStream(archive)
    for member in stream:
        folder, _, name = member.name.rpartition("/")
        if not any(pattern.fullmatch(name) for pattern in _NAMES.values()):
            max_bytes = _subtract_size(max_bytes, member.size if member.is_regular else 0)
            continue
        if not member.is_regular:
            raise InputRefused(f"{name} is a link or a device in the archive, not a file.", _REMEDY)
        if name in members.setdefault(folder, {}):
            raise InputRefused(f"{name} occurs twice in the archive.", _REMEDY)
        max_bytes = _subtract_size(max_bytes, member.size)
        members[folder][name] = store.tell(), member.size
        for piece in stream.pieces():
            store.write(piece)
    return members


def _subtract_size(max_bytes: int, size: int) -> int:
    if size > max_bytes:
        raise InputRefused("The archive is far larger than its compressed size suggests.", "Unpack and check it.")
    return max_bytes - size


def _open_archive(store: IO[bytes], members: _Members) -> tuple[Form, Files]:
    """Select the only trace in an archive; folders below the trace contain the output of Recorder's tools."""
    forms = {folder: form for folder, names in members.items() if (form := find_form(names)) is not None}
    upper = [folder for folder in forms if not any(_is_below(folder, parent) for parent in forms)]
    if len(upper) != 1:
        content = "several Recorder traces" if upper else "no Recorder trace"
        raise InputRefused(f"The archive has {content}.", "Unpack it, and land the folder.")
    folder, form = upper[0], forms[upper[0]]
    places = members[folder]
    names = {name: places[name][1] for name in select_names(places, form)}
    return form, _InArchive(store, {name: places[name][0] for name in names}, names)


def _is_below(folder: str, parent: str) -> bool:
    return folder != parent and (parent in ("", ".") or folder.startswith(f"{parent}/"))


class _SingleFile:
    """The plain or compressed text of one rank; the file is named after the rank."""

    def __init__(self, path: Path) -> None:
        rank = path.name.split(".")[0]
        if not re.fullmatch(r"[0-9]{1,9}", rank):
            raise InputRefused(
                "The file's name does not contain the rank.", "Rename it to <rank>.txt, or land its folder."
            )
        self._path = path
        self.names: Mapping[str, int] = {f"{rank}.txt": path.stat().st_size}

    def read(self, name: str, max_bytes: int | None = None) -> bytes:
        """Return the decompressed content, or its start."""
        from iosig.warehouse.sources.files.opening import open_decompressed, refusing_damage

        _check_size(self.names, name)
        with refusing_damage(), open_decompressed(self._path) as file:
            content = file.read(max_bytes or MAX_FILE_BYTES + 1)
        _check_size({name: len(content)}, name)
        return content


def is_in_archive(start: bytes) -> bool:
    """Recognize an archive by files of a Recorder trace at its start."""
    from iosig.warehouse.sources.files.tar_stream import TarStream, is_tar

    if not is_tar(start):
        return False
    stream = TarStream(io.BytesIO(start))
    try:
        for member in stream:
            name = member.name.rpartition("/")[2]
            if _NAMES["raw"].fullmatch(name):
                return True
            if _NAMES["parquet"].fullmatch(name) and stream.start(4) == b"PAR1":
                return True
            if _NAMES["text"].fullmatch(name) and is_text(stream.start(_LINE_BYTES)):
                return True
    except InputRefused:
        # The archive appears truncated, because only its start is available.
        return False
    return False
