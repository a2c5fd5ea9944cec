"""The form of a warehouse: a number that goes up whenever what lies in it changes so that older code misreads it.

1: iosig 0.1. 2: locations, tags and order of releases as every reader of Iceberg knows them; checksums.
"""

from __future__ import annotations

from warehouse.errors import UsageError
from warehouse.store.store import Store, document, put_document

FORM = 2
#: the first version of iosig that reads this form
READ_BY = "0.2"
_FILE = "form.json"


def form_of(store: Store) -> int | None:
    """Return the form of what lies in a warehouse; None where nothing does."""
    known = document(store, _FILE)
    if known is not None:
        return int(known["form"])
    return 1 if store.exists else None


def require_form(store: Store) -> None:
    """Raise UsageError, with what to do, unless a warehouse has this form or is empty."""
    found = form_of(store)
    if found is not None and found < FORM:
        raise UsageError(
            f"{store.root} has the form {found} of an older iosig; this one reads form {FORM}. "
            "`iosig upgrade --check` says what it takes, and `iosig upgrade` does it; nothing is lost."
        )
    if found is not None and found > FORM:
        read_by = document(store, _FILE)["read_by"]
        raise UsageError(f"{store.root} has form {found}: use iosig {read_by} or later; this one reads form {FORM}.")


def mark_form(store: Store) -> None:
    """Note the form of a warehouse that begins, or has been brought to it."""
    if form_of(store) != FORM:
        put_document(store, _FILE, {"form": FORM, "read_by": READ_BY})
