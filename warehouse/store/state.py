"""Keep state documents: decisions that cannot be derived from other files, such as pins, rollbacks and positions.

Each has a copy with a checksum, `copies/NAME`. `iosig verify` compares both, and `iosig repair` restores one from the
other. While a document is being replaced, its copy records this, and both the old and the new content are valid. So a
killed process leaves no damage.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from iosig.warehouse.errors import MachineFault
from iosig.warehouse.store.objects import NOTE
from iosig.warehouse.store.store import Store, document, get_digest, json_bytes

FOLDER = "copies"
#: name patterns of the documents
DOCUMENTS = (
    NOTE,
    "closed_days.json",
    "expired.json",
    "forgetting.json",
    "leaving.json",
    "losses.json",
    "pins.json",
    "positions/*.json",
    "privacy.json",
    "redirects.json",
    "rollback.json",
)
_CHANGING = json_bytes({"is_changing": True})


def put_state(store: Store, name: str, document: Any) -> None:
    """Replace a state document and its copy; None removes both."""
    if document is None and store.files.content(name) is None:
        return
    store.files.put(_get_copy_name(name), _CHANGING)
    if document is None:
        store.files.remove(name, _get_copy_name(name))
    else:
        store.files.put(name, json_bytes(document))
        store.files.put(_get_copy_name(name), _encode_copy(name, document))


def read_state(store: Store, name: str) -> Any:
    """Read a state document, or its copy if the document is not valid JSON; None if it does not exist.

    Raises MachineFault if neither is valid.
    """
    try:
        return document(store, name)
    except MachineFault:
        copied = _document_in(name, store.files.content(_get_copy_name(name)))
        if copied is None:
            raise
        return json.loads(copied)


def has_copies(store: Store) -> bool:
    """Return whether every state document has a copy; older versions wrote none."""
    return all(store.files.mark(_get_copy_name(name)) for name in _documents(store))


def problems(store: Store) -> Iterator[tuple[str, str]]:
    """Yield the damaged files, documents or copies, each with its problem."""
    copies = (name.removeprefix(f"{FOLDER}/") for name in _documents(store, f"{FOLDER}/"))
    for name in sorted({*_documents(store), *copies}):
        content, copy = store.files.content(name), store.files.content(_get_copy_name(name))
        if copy == _CHANGING:
            if content is not None and not _is_json(content):
                yield name, "is not JSON"
        elif (backup := _document_in(name, copy)) is None:
            yield _get_copy_name(name), "is missing or damaged"
        elif content != backup:
            yield name, "does not exist" if content is None else "was modified (wrong checksum)"


def mend(store: Store) -> Iterator[tuple[str, str]]:
    """Restore damaged documents and copies; yield each with the action taken."""
    for path, _ in list(problems(store)):
        name = path.removeprefix(f"{FOLDER}/")
        content, backup = store.files.content(name), _document_in(name, store.files.content(_get_copy_name(name)))
        if backup is not None:
            store.files.put(name, backup)
            yield path, "restored from its backup"
        elif content is not None and _is_json(content):
            put_state(store, name, json.loads(content))
            yield path, "written again"
        else:
            aside = [store.files.set_aside(name)] if content is not None else []
            store.files.remove(_get_copy_name(name))
            yield path, f"set aside as {aside[0]}: it has no backup" if aside else "removed: backup of a missing file"


def copy_all(store: Store) -> None:
    """Create the missing copies of state documents from their current content."""
    for name in _documents(store):
        content = store.files.content(name) or b""
        if not store.files.mark(_get_copy_name(name)) and _is_json(content):
            put_state(store, name, json.loads(content))


def _get_copy_name(name: str) -> str:
    return f"{FOLDER}/{name}"


def _documents(store: Store, folder: str = "") -> Iterator[str]:
    for pattern in DOCUMENTS:
        yield from store.files.matching(f"{folder}{pattern}")


def _encode_copy(name: str, document: Any) -> bytes:
    # the checksum includes the name, so the copy of another document is detected
    return json_bytes({"document": document, "sha256": get_digest([name, document])})


def _document_in(name: str, copy: bytes | None) -> bytes | None:
    """Return the document's bytes from a copy; None if the copy is damaged or missing."""
    try:
        document = json.loads(copy or b"")["document"]
    except (ValueError, KeyError, TypeError):
        return None
    return json_bytes(document) if copy == _encode_copy(name, document) else None


def _is_json(content: bytes) -> bool:
    try:
        json.loads(content)
    except ValueError:
        return False
    return True
