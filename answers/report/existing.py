"""Pages that lie in a report already: what each was made of, and whether it is as it was written.

Beside the pages of a release stands what they were made of. A page whose inputs are the same is not made again: it
stays, or is linked from the release that has it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from iosig.reports.site.packing import Content, unpacked
from iosig.warehouse.placing import moved_into_place

#: beside the pages of a release: what they were made of
MANIFEST = ".pages.json"


@dataclass(frozen=True, slots=True)
class Page:
    """A file of a release's folder: its path and its bytes, or where it lies already, how large, with which digest.

    fingerprint: of what it was made of; empty where it is made each time.
    """

    path: str
    data: bytes = b""
    fingerprint: str = ""
    lies: Path | None = None
    told: tuple[int, str] = (0, "")

    @property
    def byte_count(self) -> int:
        """How large it is."""
        return len(self.data) if self.lies is None else self.told[0]

    @property
    def digest(self) -> str:
        """The digest of its bytes."""
        return digest(self.data) if self.lies is None else self.told[1]

    @classmethod
    def of(cls, content: Content, fingerprint: str = "") -> Page:
        """Return a page that was made."""
        return cls(content.path, content.data, fingerprint)


@dataclass(frozen=True, slots=True)
class _Folder:
    """A release's folder, and of each page in it what it was made of and the digest of its bytes."""

    place: Path
    pages: Mapping[str, tuple[str, str]]

    def sound(self, path: str) -> bytes | None:
        """Return the bytes of a page, None where they are not what was written."""
        with suppress(OSError):
            data = (self.place / path).read_bytes()
            if digest(data) == self.pages[path][1]:
                return data
        return None


@dataclass(slots=True)
class Known:
    """The pages of some releases' folders, those of the first folder first."""

    folders: Sequence[_Folder] = ()
    documents: dict[tuple[Path, str], Any] = field(default_factory=dict)

    @classmethod
    def in_folders(cls, places: Sequence[Path]) -> Known:
        """Read what the pages of folders were made of; a folder of which nobody knows has none."""
        return cls([_Folder(place, _manifest(place / MANIFEST)) for place in places])

    def page(self, path: str, fingerprint: str) -> Page | None:
        """Return a page that was made of the same, None where there is none, or where it is damaged."""
        return next(self._pages(path, fingerprint), None)

    def page_beside(self, path: str, fingerprint: str, other: str) -> tuple[Page, Any] | None:
        """Return a page that was made of the same, and the document that lies beside it in the same folder."""
        for page in self._pages(path, fingerprint):
            document = self._document(page, other)
            if document is not None:
                return page, document
        return None

    def _pages(self, path: str, fingerprint: str) -> Iterator[Page]:
        for folder in self.folders:
            made_of, own = folder.pages.get(path, (None, ""))
            if made_of == fingerprint and (data := folder.sound(path)) is not None:
                yield Page(path, b"", fingerprint, folder.place / path, (len(data), own))

    def _document(self, page: Page, other: str) -> Any:
        folder = next(one for one in self.folders if one.place / page.path == page.lies)
        key = (folder.place, other)
        if key not in self.documents:
            data = folder.sound(other) if other in folder.pages else None
            self.documents[key] = None if data is None else unpacked(data)
        return self.documents[key]


def _manifest(path: Path) -> dict[str, tuple[str, str]]:
    with suppress(OSError, ValueError, TypeError, KeyError, AttributeError):
        told = json.loads(path.read_bytes())["pages"]
        return {str(name): (str(fingerprint), str(own)) for name, (fingerprint, own) in told.items()}
    return {}


def digest(data: bytes) -> str:
    """Return the digest of a page's bytes."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def keep(place: Path, pages: Mapping[str, tuple[str, str]]) -> None:
    """Note what the pages of a folder were made of, with the digest of each."""
    with moved_into_place(place.absolute() / MANIFEST) as temporary:
        temporary.write_text(json.dumps({"pages": dict(sorted(pages.items()))}, separators=(",", ":")))
