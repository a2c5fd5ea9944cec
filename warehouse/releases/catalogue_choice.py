"""Select a warehouse's catalogue: the SQLite file, or one on a server that the settings name."""

from __future__ import annotations

from iosig.warehouse.errors import UsageError
from iosig.warehouse.releases.checksums import CATALOGUE_SEAL
from iosig.warehouse.releases.locations import get_location, is_moved, metadata_locations
from iosig.warehouse.releases.servers import (
    EMBEDDED,
    Server,
    get_server,
    locations_on,
    note,
    register,
    require_installed,
)
from iosig.warehouse.store.store import Store


def agree(store: Store, wanted: Server | None) -> None:
    """Create the catalogue that the settings request in a new warehouse; if `wanted` is None, accept any catalogue.

    Raises UsageError if the warehouse already has a different catalogue, or if the requested one belongs to another
    warehouse.
    """
    known = get_server(store)
    if store.url is not None and (wanted or known) == EMBEDDED:
        raise UsageError(
            f"{store.url} needs a catalogue on a server, because an SQLite file must be in a local folder: set "
            "[catalogue] in the settings."
        )
    if wanted is None or wanted == known:
        return
    if wanted.kind == "rest" and store.url is None:
        raise UsageError(f"A REST catalogue needs a warehouse in an object store, and {store.name} is a folder.")
    if metadata_locations(store):
        raise UsageError(
            f"The catalogue of {store.name} is {known}, but the settings require {wanted}. `iosig repair` moves it."
        )
    require_free(store, wanted)
    note(store, wanted)


def require_free(store: Store, wanted: Server) -> None:
    """Raise UsageError if a catalogue contains the tables of another warehouse."""
    require_installed(wanted)
    own = f"{get_location(store)}/"
    if wanted == EMBEDDED:
        return
    if wanted.kind == "rest":
        from iosig.warehouse.releases import rest

        rest.claim(rest.open_rest_catalogue(wanted), wanted, store.name)
    elif other := next((place for place in locations_on(wanted).values() if not place.startswith(own)), None):
        raise UsageError(
            f"The catalogue {wanted} is that of the warehouse {other.rsplit('/tables/', 1)[0]}. "
            "Set another catalogue.name in the settings."
        )


def take_over(store: Store, wanted: Server) -> bool:
    """Move a warehouse's catalogue to another server or to the SQLite file; return False if it is already there.

    The new catalogue is complete before the warehouse's note names it, and the old one is emptied last. For a copied
    warehouse, the original's catalogue stays unchanged; the copy gets a new one, built from the files in its own
    folder.
    """
    from iosig.warehouse.releases.catalogue import make_catalogue
    from iosig.warehouse.releases.relocating import relocate
    from iosig.warehouse.releases.repairing import repair

    known = get_server(store)
    if wanted == known:
        return False
    if "rest" in (known.kind, wanted.kind):
        raise UsageError(
            f"The catalogue of {store.name} is {known}. A REST server decides on the location of tables, so a "
            "warehouse cannot change to or from one."
        )
    require_free(store, wanted)
    if known == EMBEDDED:
        relocate(store)
    is_own = not is_moved(store)
    make_catalogue(store, wanted)
    register(store, wanted, metadata_locations(store) if is_own else {})
    note(store, wanted)
    if not is_own:
        repair(store)
    elif known == EMBEDDED:
        store.files.remove(store.catalogue.name, CATALOGUE_SEAL)
    else:
        register(store, known, {})
    return True
