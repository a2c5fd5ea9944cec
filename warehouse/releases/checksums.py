"""Read and write checksum documents: sizes and SHA-256 sums of files, in JSON with a checksum of its own.

`seals/NNNNNN-RELEASE.json` lists the files that a release added. `seals/catalogue.json` covers the SQLite catalogue. It
is empty while the catalogue changes, so a writer that is killed leaves no wrong checksum.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from iosig.warehouse.store.files import FileChecksum
from iosig.warehouse.store.store import Store, get_digest, put_document, read_cache

#: the folder of checksum documents
SEALS = "seals"
CATALOGUE_SEAL = f"{SEALS}/catalogue.json"
#: future checksums of metadata, valid once a relocation is complete
RELOCATION = f"{SEALS}/relocation.json"


def checksums_now(
    store: Store, names: Iterable[str], copies: Mapping[str, Path] | None = None
) -> dict[str, FileChecksum]:
    """Read files and return their checksums by name; copies: local files with the same content."""
    file_names, local_paths = list(names), copies or {}

    def read_one(name: str) -> FileChecksum:
        return FileChecksum.from_path(local_paths[name]) if name in local_paths else store.files.compute_checksum(name)

    return dict(zip(file_names, store.files.each(read_one, file_names), strict=True))


def write(store: Store, name: str, files: Mapping[str, FileChecksum]) -> None:
    """Write a checksum document."""
    document: dict[str, Any] = {name: asdict(sealed) for name, sealed in sorted(files.items())}
    put_document(store, name, {"files": document, "sha256": get_digest(document)})


def read(store: Store, name: str) -> dict[str, FileChecksum] | None:
    """Return the checksums of a document by file name; None if the document is damaged or absent."""
    return read_cache(store, name, _read)


def _read(document: Any) -> dict[str, FileChecksum]:
    if document["sha256"] != get_digest(document["files"]):
        raise ValueError("the checksum document itself has a wrong checksum")
    return {name: FileChecksum(**sealed) for name, sealed in document["files"].items()}


def release_seals(store: Store) -> list[str]:
    """Return the names of all releases' checksum documents, oldest first."""
    return store.files.matching(f"{SEALS}/[0-9]*.json")


def find_problem(store: Store, name: str, sealed: FileChecksum) -> str | None:
    """Compare a file with its checksum and describe any difference. Raises PermissionError for an unreadable file."""
    try:
        actual = store.files.compute_checksum(name)
    except FileNotFoundError:
        return "does not exist"
    except PermissionError:
        # an unreadable file is not necessarily damaged
        raise
    except OSError as error:
        return f"cannot be read ({error.strerror})"
    if actual.byte_count != sealed.byte_count:
        return f"has {actual.byte_count:,} bytes, not {sealed.byte_count:,}"
    return None if actual == sealed else "was modified (wrong checksum)"


@contextmanager
def changing_catalogue(store: Store) -> Iterator[None]:
    """Update the checksum of the SQLite catalogue after changes that are committed in this block."""
    before = read(store, CATALOGUE_SEAL)
    write(store, CATALOGUE_SEAL, {})
    try:
        yield
    except Exception:
        # the change was rolled back
        write(store, CATALOGUE_SEAL, before or {})
        raise
    seal_catalogue(store)


def seal_catalogue(store: Store) -> None:
    """Record the current checksum of the SQLite catalogue, if the warehouse has one."""
    name = store.catalogue.name
    if store.has(name):
        write(store, CATALOGUE_SEAL, checksums_now(store, [name]))
