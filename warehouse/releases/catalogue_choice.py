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


def agree(store: Store, server: Server | None) -> None:
    """Create the catalogue that the settings request in a new warehouse; if `server` is None, accept any catalogue.

    Raises UsageError if the warehouse already has a different catalogue, or if the requested one belongs to another
    warehouse.
    """
    current = get_server(store)
    if store.url is not None and (server or current) == EMBEDDED:
        raise UsageError(
            f"{store.url} needs a catalogue on a server, because an SQLite file must be in a local folder: set "
            "[catalogue] in the settings."
        )
    if server is None or server == current:
        return
    if server.kind == "rest" and store.url is None:
        raise UsageError(f"A REST catalogue needs a warehouse in an object store, and {store.name} is a folder.")
    if metadata_locations(store):
        raise UsageError(
            f"The catalogue of {store.name} is {current}, but the settings require {server}. `iosig repair` moves it."
        )
    require_free(store, server)
    note(store, server)


def require_free(store: Store, server: Server) -> None:
    """Raise UsageError if a catalogue contains the tables of another warehouse."""
    require_installed(server)
    prefix = f"{get_location(store)}/"
    if server == EMBEDDED:
        return
    if server.kind == "rest":
        from iosig.warehouse.releases import rest

        rest.claim(rest.open_rest_catalogue(server), server, store.name)
    elif foreign_location := next(
        (place for place in locations_on(server).values() if not place.startswith(prefix)), None
    ):
        raise UsageError(
            f"The catalogue {server} is that of the warehouse {foreign_location.rsplit('/tables/', 1)[0]}. "
            "Set another catalogue.name in the settings."
        )


def take_over(store: Store, target: Server) -> bool:
    """Move a warehouse's catalogue to another server or to the SQLite file; return False if it is already there.

    The new catalogue is complete before the warehouse's note names it, and the old one is emptied last. For a copied
    warehouse, the original's catalogue stays unchanged; the copy gets a new one, built from the files in its own
    folder.
    """
    from iosig.warehouse.releases.catalogue import make_catalogue
    from iosig.warehouse.releases.relocating import relocate
    from iosig.warehouse.releases.repairing import repair

    current = get_server(store)
    if target == current:
        return False
    if "rest" in (current.kind, target.kind):
        raise UsageError(
            f"The catalogue of {store.name} is {current}. A REST server decides on the location of tables, so a "
            "warehouse cannot change to or from one."
        )
    require_free(store, target)
    if current == EMBEDDED:
        relocate(store)
    is_own = not is_moved(store)
    make_catalogue(store, target)
    register(store, target, metadata_locations(store) if is_own else {})
    note(store, target)
    if not is_own:
        repair(store)
    elif current == EMBEDDED:
        store.files.remove(store.catalogue.name, CATALOGUE_SEAL)
    else:
        register(store, current, {})
    return True
