"""Cache report pages, and reuse pages with unchanged inputs.

A manifest in each release folder has the fingerprint of each page's inputs. A page with the same fingerprint is not
rebuilt: it stays, or is linked from the folder of another release.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from iosig.reports.site.packing import Content, unpack_document
from iosig.warehouse.placing import atomic_write

#: file with the fingerprint and digest of each page of a release
MANIFEST = ".pages.json"


@dataclass(frozen=True, slots=True)
class Page:
    """A file of a release folder: either new data, or an existing file with its size and digest.

    fingerprint: hash of its inputs; empty if the page is built every time.
    """

    path: str
    data: bytes = b""
    fingerprint: str = ""
    existing: Path | None = None
    size_and_digest: tuple[int, str] = (0, "")

    @property
    def byte_count(self) -> int:
        """Size of the page in bytes."""
        return len(self.data) if self.existing is None else self.size_and_digest[0]

    @property
    def digest(self) -> str:
        """Digest of the page's content."""
        return digest(self.data) if self.existing is None else self.size_and_digest[1]

    @classmethod
    def from_content(cls, content: Content, fingerprint: str = "") -> Page:
        """Create a page from new content."""
        return cls(content.path, content.data, fingerprint)


@dataclass(frozen=True, slots=True)
class _Folder:
    """A release folder with the fingerprint and digest of each page."""

    place: Path
    pages: Mapping[str, tuple[str, str]]

    def read_valid(self, path: str) -> bytes | None:
        """Read a page; None if its digest does not match the manifest."""
        with suppress(OSError):
            data = (self.place / path).read_bytes()
            if digest(data) == self.pages[path][1]:
                return data
        return None


@dataclass(slots=True)
class PageCache:
    """The pages of some release folders; earlier folders take precedence."""

    folders: Sequence[_Folder] = ()
    documents: dict[tuple[Path, str], Any] = field(default_factory=dict)

    @classmethod
    def in_folders(cls, places: Sequence[Path]) -> PageCache:
        """Read the manifests of folders; a folder without a manifest has no reusable pages."""
        return cls([_Folder(place, _manifest(place / MANIFEST)) for place in places])

    def page(self, path: str, fingerprint: str) -> Page | None:
        """Find an intact page with the same fingerprint; None without one."""
        return next(self._pages(path, fingerprint), None)

    def page_with_document(self, path: str, fingerprint: str, document_path: str) -> tuple[Page, Any] | None:
        """Find an intact page with the same fingerprint, and a document of the same folder."""
        for page in self._pages(path, fingerprint):
            document = self._document(page, document_path)
            if document is not None:
                return page, document
        return None

    def _pages(self, path: str, fingerprint: str) -> Iterator[Page]:
        for folder in self.folders:
            known_fingerprint, digest = folder.pages.get(path, (None, ""))
            if known_fingerprint == fingerprint and (data := folder.read_valid(path)) is not None:
                yield Page(path, b"", fingerprint, folder.place / path, (len(data), digest))

    def _document(self, page: Page, document_path: str) -> Any:
        folder = next(candidate for candidate in self.folders if candidate.place / page.path == page.existing)
        key = (folder.place, document_path)
        if key not in self.documents:
            data = folder.read_valid(document_path) if document_path in folder.pages else None
            self.documents[key] = None if data is None else unpack_document(data)
        return self.documents[key]


def _manifest(path: Path) -> dict[str, tuple[str, str]]:
    with suppress(OSError, ValueError, TypeError, KeyError, AttributeError):
        pages = json.loads(path.read_bytes())["pages"]
        return {str(name): (str(fingerprint), str(digest)) for name, (fingerprint, digest) in pages.items()}
    return {}


def digest(data: bytes) -> str:
    """Hash the content of a page with BLAKE2b (128 bits)."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def write_manifest(place: Path, pages: Mapping[str, tuple[str, str]]) -> None:
    """Write the fingerprint and digest of each page of a folder."""
    with atomic_write(place.absolute() / MANIFEST) as temporary:
        temporary.write_text(json.dumps({"pages": dict(sorted(pages.items()))}, separators=(",", ":")))
