"""The form of a warehouse: a number that goes up whenever what lies in it changes so that older code misreads it.

1: iosig 0.1. 2: locations, tags and order of releases as every reader of Iceberg knows them; checksums.
"""

from __future__ import annotations

from iosig.warehouse.errors import MachineFault, UsageError
from iosig.warehouse.store.store import Store, document, put_document

FORM = 2
#: the first version of iosig that reads this form
READ_BY = "0.2"
_FILE = "form.json"
#: what every landing of form 2 leaves, and none of form 1
_SINCE_2 = "landing.sequence"


def form_of(store: Store) -> int | None:
    """Return the form of what lies in a warehouse; None where nothing does. MachineFault where nothing tells it."""
    known = document(store, _FILE)
    if known is None and store.files.mark(_SINCE_2):
        raise MachineFault(f"{store.root / _FILE} is not there. `iosig repair` makes it anew.")
    if known is None:
        return 1 if store.exists else None
    try:
        return int(known["form"])
    except (KeyError, TypeError, ValueError) as error:
        raise MachineFault(f"{store.root / _FILE} is damaged. `iosig repair` makes it anew.") from error


def mend_form(store: Store) -> bool:
    """Note the form anew where its note is damaged or gone, which form 1 does not have; return whether it was."""
    try:
        form_of(store)
    except MachineFault:
        put_document(store, _FILE, {"form": FORM, "read_by": READ_BY})
        return True
    return False


def require_form(store: Store) -> None:
    """Raise UsageError, with what to do, unless a warehouse has this form or is empty."""
    found = form_of(store)
    if found is not None and found < FORM:
        raise UsageError(
            f"{store.name} has the form {found} of an older iosig; this one reads form {FORM}. "
            "`iosig upgrade --check` says what it takes, and `iosig upgrade` does it; nothing is lost."
        )
    if found is not None and found > FORM:
        read_by = document(store, _FILE)["read_by"]
        raise UsageError(f"{store.name} has form {found}: use iosig {read_by} or later; this one reads form {FORM}.")


def mark_form(store: Store) -> None:
    """Note the form of a warehouse that begins, or has been brought to it; one that begins is closed to others."""
    found = form_of(store)
    if found != FORM:
        put_document(store, _FILE, {"form": FORM, "read_by": READ_BY})
    if found is None:
        # names of users and jobs lie in it: who may read them is the owner's to say
        store.files.close_to_others()
