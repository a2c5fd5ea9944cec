"""Record and check the format version of a warehouse, which increases if older code would misread new content.

2: commit 18b5d00. 3: the public names of iosig 0.1.0.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from iosig.warehouse.errors import MachineFault, UsageError
from iosig.warehouse.store.store import Store, document, put_document

FORM = 3
#: the format version of commit 18b5d00
FORMER = 2
#: the first version of iosig that reads this format
READ_BY = "0.1.0"
FILE = "form.json"
#: file that exists after any landing
_LANDED = "landing.sequence"
_NOTE, _FORMER_NOTE = {"form": FORM, "read_by": READ_BY}, {"form": FORMER, "read_by": "0.2"}
#: folder of a table that exists only in format version 2
_FORMER_TABLE = "tables/best_job_io"
#: exists in a warehouse during an upgrade; readers see the old format until it is removed
UNFINISHED = "before-upgrade/landed.json"
#: warehouses that this process upgrades
_UPGRADING: set[Path] = set()


@contextmanager
def upgrading(store: Store) -> Iterator[None]:
    """Let only this process use a warehouse, while it upgrades the warehouse in this block."""
    _UPGRADING.add(store.root)
    try:
        yield
    finally:
        _UPGRADING.discard(store.root)


def read_form(store: Store) -> int | None:
    """Return a warehouse's format version; None if it is empty. Raises MachineFault if the marker is damaged."""
    if store.url is None and store.root not in _UPGRADING and (store.root / UNFINISHED).is_file():
        return FORMER
    if is_damaged(store):
        raise MachineFault(f"{store.root / FILE} is missing or damaged. `iosig repair` writes it again.")
    marker = document(store, FILE)
    if marker is None:
        return 1 if store.exists else None
    return int(marker["form"])


def is_damaged(store: Store) -> bool:
    """Return whether the format marker is damaged, or missing in a warehouse with landings.

    A newer format version is accepted if it also names a newer version of iosig.
    """
    content = store.files.content(FILE)
    if content is None:
        return bool(store.files.mark(_LANDED))
    try:
        marker = json.loads(content)
        is_newer = int(marker["form"]) > FORM and _numbers(marker["read_by"]) > _numbers(READ_BY)
    except (KeyError, TypeError, ValueError, AttributeError):
        return True
    return marker not in (_NOTE, _FORMER_NOTE) and not is_newer


def _numbers(version: str) -> list[int]:
    return [int(number) for number in version.split(".")]


def mend_form(store: Store) -> bool:
    """Rewrite the format marker if it is damaged or missing; return whether it was."""
    is_lost = is_damaged(store)
    if is_lost:
        put_document(store, FILE, _FORMER_NOTE if store.files.holds(_FORMER_TABLE) else _NOTE)
    return is_lost


def require_form(store: Store) -> None:
    """Raise UsageError, with a remedy, unless a warehouse has the current format or is empty."""
    form = read_form(store)
    if form is not None and form < FORM:
        raise UsageError(
            f"{store.name} has the form {form} of an older iosig; this one reads form {FORM}. `iosig upgrade "
            "--check` prints the time and space needed, and `iosig upgrade` converts it without loss of data."
        )
    if form is not None and form > FORM:
        read_by = document(store, FILE)["read_by"]
        raise UsageError(f"{store.name} has form {form}: use iosig {read_by} or later; this one reads form {FORM}.")


def mark_form(store: Store) -> None:
    """Write the format marker of a new or upgraded warehouse; restrict access to a new one to its owner and group."""
    form = read_form(store)
    if form != FORM:
        put_document(store, FILE, _NOTE)
    if form is None:
        # the warehouse contains names of users and jobs, so its owner decides who may read them
        store.files.close_to_others()
