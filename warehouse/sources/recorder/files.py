"""The files of one Recorder trace, wherever they lie: in a folder, in an archive of it, or one by itself.

A trace has one of three forms. `raw`: `VERSION`, `recorder.mt` and, by rank, `.cst`, `.cfg` and `.ts`; `text`:
`<rank>.txt` of recorder2text; `parquet`: `<rank>.parquet` of recorder2parquet. Other files beside them are none
of the trace's.
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
    # recorder2text pads the ranks with zeros, or does not.
    "text": re.compile(r"[0-9]{1,9}\.txt"),
    "parquet": re.compile(r"[0-9]{1,9}\.parquet"),
}
_LINE = re.compile(rb"[0-9]+\.[0-9]+ [0-9]+\.[0-9]+ [^ \n]* [0-9]+ [0-4] \((?: [^\n]*)? \)\r?(?:\n|$)")
_EXPORTED = (b"tstart", b"tend", b"func_id", b"args_10")

#: what is read of a file to tell whether it is one of a trace
_HEAD_BYTES = 1 << 16
_LINE_BYTES = 1 << 12
_LOOKED_AT = 8
#: of one file of a trace, that is of one rank
MOST_FILE_BYTES = 2 << 30
#: an archive may become as large as this, and beyond it so many times its own size; more is a trap
FREE_BYTES = 1 << 30
MOST_TIMES = 200
_KEPT_IN_MEMORY_BYTES = 64 << 20
_REMEDY = "Fetch or pack the trace anew, with all of its files and nothing else."


class Files(Protocol):
    """The files of a trace: their sizes by name, and their contents."""

    @property
    def names(self) -> Mapping[str, int]:
        """Return the sizes of the files by their names."""

    def read(self, name: str, most: int | None = None) -> bytes:
        """Return a file, or its start; raise InputRefused where it is missing, too large or cannot be read."""


@dataclass(frozen=True, slots=True)
class _InFolder:
    folder: Path
    names: Mapping[str, int]

    def read(self, name: str, most: int | None = None) -> bytes:
        _check_size(self.names, name)
        try:
            with (self.folder / name).open("rb") as file:
                return file.read(most or MOST_FILE_BYTES)
        except OSError as error:
            raise InputRefused(f"{name} cannot be read: {error.strerror}.", "Check it and its folder.") from error


@dataclass(frozen=True, slots=True)
class _InArchive:
    """Files that were copied out of an archive, one behind the other, into one that has no name."""

    store: IO[bytes]
    places: Mapping[str, int]
    names: Mapping[str, int]

    def read(self, name: str, most: int | None = None) -> bytes:
        _check_size(self.names, name)
        self.store.seek(self.places[name])
        return self.store.read(min(self.names[name], most or MOST_FILE_BYTES))


def _check_size(names: Mapping[str, int], name: str) -> None:
    if name not in names:
        raise InputRefused(f"{name} is missing.", _REMEDY)
    if names[name] > MOST_FILE_BYTES:
        raise InputRefused(f"{name} has {names[name]} bytes, more than can be read at once.", "Trace fewer calls.")


def form_of(names: Collection[str]) -> Form | None:
    """Return the form of the trace that files of these names are, by the names alone."""
    if "recorder.mt" in names and any(name.endswith(".cst") for name in names):
        return "raw"
    return next((form for form in ("text", "parquet") if any(map(_NAMES[form].fullmatch, names))), None)


def belonging(names: Collection[str], form: Form) -> tuple[str, ...]:
    """Return those of the names that are of a trace of this form, sorted."""
    return tuple(sorted(name for name in names if _NAMES[form].fullmatch(name)))


def owned(folder: Path) -> tuple[str, ...]:
    """Return the names of a folder's files that are one trace; none where there is none.

    Text and Parquet files can have such names and be something else: one of the first that hold anything must be
    of a trace.
    """
    try:
        names = [path.name for path in folder.iterdir() if path.is_file()]
        form = form_of(names)
        found = belonging(names, form) if form else ()
        held = (folder / name for name in found if (folder / name).stat().st_size)
        return found if form == "raw" or any(map(_is_of_a_trace, islice(held, _LOOKED_AT))) else ()
    except OSError:
        return ()


def _is_of_a_trace(path: Path) -> bool:
    if path.suffix == ".parquet":
        return is_exported(path)
    with path.open("rb") as file:
        return is_text(file.read(_HEAD_BYTES))


def is_text(start: bytes) -> bool:
    """Return whether content that starts so is what recorder2text prints."""
    return _LINE.match(start) is not None


def is_exported(path: Path) -> bool:
    """Return whether a Parquet file has the columns of Recorder's export."""
    from iosig.warehouse.sources.files.opening import parquet_footer

    footer = parquet_footer(path)
    return all(name in footer for name in _EXPORTED)


@contextmanager
def opened(path: Path) -> Iterator[tuple[Form, Files]]:
    """Open the trace that lies in a folder, an archive of one, plain or compressed, or a single text file."""
    from iosig.warehouse.sources.files.opening import open_bytes, read_head, refusing_damage
    from iosig.warehouse.sources.files.tarred import is_tar

    if path.is_dir():
        yield _of_folder(path)
    elif is_tar(read_head(path).start):
        with tempfile.SpooledTemporaryFile(_KEPT_IN_MEMORY_BYTES) as store:
            with refusing_damage("The archive is damaged"), open_bytes(path) as archive:
                members = _copied(archive, store, FREE_BYTES + MOST_TIMES * path.stat().st_size)
            yield _of_archive(store, members)
    else:
        yield "text", _SingleFile(path)


def _of_folder(path: Path) -> tuple[Form, Files]:
    names = owned(path)
    form = form_of(names)
    if form is None:
        raise InputRefused("The folder holds no Recorder trace.", _REMEDY)
    return form, _InFolder(path, {name: (path / name).stat().st_size for name in names})


#: place and size by folder and name
_Members = dict[str, dict[str, tuple[int, int]]]


def _copied(archive: IO[bytes], store: IO[bytes], most_bytes: int) -> _Members:
    """Copy the files of an archive that may be a trace's into the store; return where each one is."""
    from iosig.warehouse.sources.files.tarred import TarStream

    found: _Members = {}
    stream = TarStream(archive)
    for member in stream:
        folder, _, name = member.name.rpartition("/")
        if not any(pattern.fullmatch(name) for pattern in _NAMES.values()):
            most_bytes = _lessened(most_bytes, member.size if member.is_regular else 0)
            continue
        if not member.is_regular:
            raise InputRefused(f"{name} is a link or a device in the archive, no file.", _REMEDY)
        if name in found.setdefault(folder, {}):
            raise InputRefused(f"{name} comes twice in the archive.", _REMEDY)
        most_bytes = _lessened(most_bytes, member.size)
        found[folder][name] = store.tell(), member.size
        for piece in stream.pieces():
            store.write(piece)
    return found


def _lessened(most_bytes: int, size: int) -> int:
    if size > most_bytes:
        raise InputRefused("The archive holds far more than its size gives reason for.", "Unpack and check it.")
    return most_bytes - size


def _of_archive(store: IO[bytes], members: _Members) -> tuple[Form, Files]:
    """Return the one trace of an archive; what Recorder's tools made of it lies in folders below it."""
    forms = {folder: form for folder, names in members.items() if (form := form_of(names)) is not None}
    upper = [folder for folder in forms if not any(_is_below(folder, other) for other in forms)]
    if len(upper) != 1:
        said = "several Recorder traces" if upper else "no Recorder trace"
        raise InputRefused(f"The archive holds {said}.", "Unpack it, and land the folder.")
    folder, form = upper[0], forms[upper[0]]
    places = members[folder]
    names = {name: places[name][1] for name in belonging(places, form)}
    return form, _InArchive(store, {name: places[name][0] for name in names}, names)


def _is_below(folder: str, other: str) -> bool:
    return folder != other and (other in ("", ".") or folder.startswith(f"{other}/"))


class _SingleFile:
    """The text of one rank by itself, plain or compressed; its name is the rank."""

    def __init__(self, path: Path) -> None:
        rank = path.name.split(".")[0]
        if not re.fullmatch(r"[0-9]{1,9}", rank):
            raise InputRefused(
                "The file's name does not say of which rank its calls are.", "Call it <rank>.txt, or land its folder."
            )
        self._path = path
        self.names: Mapping[str, int] = {f"{rank}.txt": path.stat().st_size}

    def read(self, name: str, most: int | None = None) -> bytes:
        """Return the content, or its start, decompressed."""
        from iosig.warehouse.sources.files.opening import open_bytes, refusing_damage

        _check_size(self.names, name)
        with refusing_damage(), open_bytes(self._path) as file:
            content = file.read(most or MOST_FILE_BYTES + 1)
        _check_size({name: len(content)}, name)
        return content


def is_in_archive(start: bytes) -> bool:
    """Return whether the archive that starts so begins with files of a Recorder trace."""
    from iosig.warehouse.sources.files.tarred import TarStream, is_tar

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
        # Only the start is here: it breaks off.
        return False
    return False
