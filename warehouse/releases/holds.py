"""Keep rollbacks in force: define the data that later runs exclude until the operator ends the rollback.

A hold is a JSON document that is written before the rollback itself. So a rollback that is killed in between is in
force, and the same command completes it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any

from iosig.warehouse.errors import NothingToDo, UsageError, meant
from iosig.warehouse.releases import publishing, releases
from iosig.warehouse.releases.releases import Release
from iosig.warehouse.store import ledger
from iosig.warehouse.store.state import put_state, read_state
from iosig.warehouse.store.store import Store

_NAME = "rollback.json"
#: maximum number of landing ids in a message
_MAX_NAMED = 3


@dataclass(frozen=True, slots=True)
class Hold:
    """A rollback in force, which restricts later runs until the operator ends it.

    landing_ids: excluded landings. table_names: tables that keep their rows of the target. parameters: the only
    settings with which runs may publish during the rollback; None for any. ended_at: set if the rollback has ended, and
    the next run has yet to recompute the excluded data.
    """

    target_id: str
    since: str
    landing_ids: tuple[str, ...]
    table_names: tuple[str, ...]
    parameters: str | None
    ended_at: str | None = None

    @property
    def exclusions(self) -> str:
        """The exclusions as a verb phrase, for use in messages."""
        count = len(self.landing_ids)
        shown_ids = ", ".join(self.landing_ids[:_MAX_NAMED]) + (", …" if count > _MAX_NAMED else "")
        landings = [f"exclude {count:,} {'landing' if count == 1 else 'landings'} ({shown_ids})"] if count else []
        tables = [f"keep {', '.join(self.table_names)} as in {self.target_id}"] if self.table_names else []
        return " and ".join([*landings, *tables]) or "publish with the settings of that release only"

    @property
    def sentence(self) -> str:
        """Message with the start of the rollback and the command that ends it."""
        return (
            f"The rollback to {self.target_id} is in force since {self.since[:16].replace('T', ' ')}: runs "
            f"{self.exclusions}. `iosig rollback --end` ends it."
        )


def read(store: Store) -> Hold | None:
    """Read the rollback in force, or an ended one that the next run has yet to process; otherwise None."""
    document: dict[str, Any] | None = read_state(store, _NAME)
    if document is None:
        return None
    return Hold(**document | {name: tuple(document[name]) for name in ("landing_ids", "table_names")})


def in_force(store: Store) -> Hold | None:
    """Read the rollback in force; None if the last one has ended."""
    hold = read(store)
    return None if hold is None or hold.ended_at else hold


def roll_back(
    store: Store, release_id: str, landing_ids: Sequence[str] = (), table_names: Sequence[str] = ()
) -> tuple[Release, Hold]:
    """Make an earlier release the current one and keep it in force; return the new release and the hold.

    landing_ids, table_names: exclusions for later runs. By default these are all landings of the releases that are
    rolled back, and runs with settings other than the target's are refused. Raises NothingToDo if the same rollback is
    already in force, UsageError for an unknown release, landing or table.
    """
    target, before = releases.find(store, release_id), read(store)
    current = releases.find(store, None)
    _require_known(store, landing_ids, table_names)
    is_default = not landing_ids and not table_names
    hold = Hold(
        target_id=target.release_id,
        since=before.since if before else datetime.now(UTC).isoformat(timespec="seconds"),
        landing_ids=tuple(
            sorted({*(_find_rolled_back_landings(store, current, target, before) if is_default else landing_ids)})
        ),
        table_names=tuple(sorted({*table_names})),
        parameters=target.parameters if is_default else None,
    )
    if target.snapshots == current.snapshots:
        if before == hold or (before is None and is_default):
            raise NothingToDo(f"{target.release_id} is already the current release.")
        put_state(store, _NAME, asdict(hold))
        return current, hold
    put_state(store, _NAME, asdict(hold))
    try:
        return publishing.rollback(store, target), hold
    except Exception:
        put_state(store, _NAME, before and asdict(before))
        raise


def _find_rolled_back_landings(store: Store, current: Release, target: Release, before: Hold | None) -> set[str]:
    """Return the landings of the current release, or of an earlier rollback, that the target lacks."""
    excluded = {*before.landing_ids} if before else set()
    return (excluded | {*releases.landings_in(store, current)}) - {*releases.landings_in(store, target)}


def _require_known(store: Store, landing_ids: Collection[str], table_names: Collection[str]) -> None:
    landed = set(ledger.read(store).select_landings(landing_ids)["landing_id"]) if landing_ids else set()
    if unknown := sorted({*landing_ids} - landed):
        raise UsageError(f"Unknown landing {unknown[0]}: `iosig releases --json` lists the landings of each release.")
    names = [table.name for table in releases.list_published_tables()]
    for name in table_names:
        if name not in names:
            raise UsageError(f"No published table is named {name!r}.{meant(name, names)}")


def end(store: Store) -> Hold:
    """End the rollback in force and return it; the next run publishes the excluded data."""
    hold = in_force(store)
    if hold is None:
        raise NothingToDo("No rollback is in force.")
    ended = replace(hold, ended_at=datetime.now(UTC).isoformat(timespec="seconds"))
    put_state(store, _NAME, asdict(ended) if hold.table_names else None)
    return hold


def settle(store: Store) -> None:
    """Delete the document of an ended rollback, after a run has recomputed the affected tables."""
    hold = read(store)
    if hold is not None and hold.ended_at:
        put_state(store, _NAME, None)


def rename(store: Store, landing_ids: Mapping[str, str]) -> None:
    """Replace excluded landings by their rewritten generations; landing_ids maps old ids to new ones."""
    hold = read(store)
    if hold is not None:
        ids = sorted({landing_ids.get(name, name) for name in hold.landing_ids})
        put_state(store, _NAME, asdict(replace(hold, landing_ids=tuple(ids))))
