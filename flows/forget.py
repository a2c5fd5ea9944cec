"""Removal of a landing, or of all data of a user, from the warehouse and from every kept release.

A landing is an input as it was read once. The remaining rows of an affected landing land as its next generation. Each
kept release that reads these landings is rebuilt by the nightly steps and replaced; then old releases and files are
removed. Every step is idempotent, and the plan is stored until the end: repeating the command resumes a removal.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import polars as pl
from pydantic import ValidationError

from iosig.expectations import docs
from iosig.flows import executors
from iosig.flows.nightly import Report, begin_run, build
from iosig.flows.own_data import OwnData, find as find_own
from iosig.flows.steps import release as releasing
from iosig.flows.steps.order import STEPS
from iosig.flows.steps.plan import Start, get_settings, make_plan
from iosig.flows.steps.run import Run
from iosig.flows.steps.signatures import CHANGES
from iosig.settings.model import Settings
from iosig.streams.landing import names_in
from iosig.warehouse.contracts import Table
from iosig.warehouse.contracts.signatures import SIGNATURES
from iosig.warehouse.engine_paths import read_parquet
from iosig.warehouse.errors import MachineFault, NothingToDo, UsageError
from iosig.warehouse.releases import expiring, holds, publishing, redirects, releases, seals
from iosig.warehouse.releases.releases import Release
from iosig.warehouse.store import forgetting, ledger
from iosig.warehouse.store.files import DAMAGED_FOLDER
from iosig.warehouse.store.journal import Journal
from iosig.warehouse.store.manifests import Landing, id_in, in_folder
from iosig.warehouse.store.state import put_state
from iosig.warehouse.store.store import Store, document, write_parquet

_INTENT = "forgetting.json"
#: time to wait for readers of releases that will be removed [s]
_READERS_S = 60.0


@dataclass(frozen=True, slots=True)
class ErasureRequest:
    """A request to remove a landing, by its id, or all data of a user, with the reason."""

    landing_id: str | None
    user: str | None
    reason: str


@dataclass(frozen=True, slots=True)
class AffectedData:
    """Affected landings with the ids of their next generations, and affected releases with the landings that they read.

    own: the user's data, if all data of a user are removed.
    """

    asked: ErasureRequest
    at: str
    landings: Mapping[str, str]
    releases: Mapping[str, tuple[str, ...]]
    own: OwnData | None

    @property
    def document(self) -> dict[str, Any]:
        """JSON representation, from which an interrupted removal resumes."""
        request = {"landing_id": self.asked.landing_id, "user": self.asked.user, "reason": self.asked.reason}
        own_data = None if self.own is None else self.own.document()
        return {
            **{"asked": request, "at": self.at, "own": own_data},
            **{"landings": dict(self.landings), "releases": dict(self.releases)},
        }

    @classmethod
    def from_document(cls, content: Mapping[str, Any]) -> AffectedData:
        """Read the JSON representation."""
        own_data = None if content["own"] is None else OwnData.from_document(content["own"])
        landing_ids = {name: tuple(ids) for name, ids in content["releases"].items()}
        return cls(ErasureRequest(**content["asked"]), content["at"], content["landings"], landing_ids, own_data)


def find(store: Store, settings: Settings, request: ErasureRequest) -> AffectedData:
    """Find the affected landings and releases, or load those of an interrupted removal.

    Raises NothingToDo if no data match, UsageError if another removal was interrupted.
    """
    intent = document(store, _INTENT)
    if intent is not None:
        affected = AffectedData.from_document(intent)
        if (affected.asked.landing_id, affected.asked.user) != (
            request.landing_id,
            _pseudonymize_user(store, settings, request.user),
        ):
            subject = "a user's data" if affected.asked.user else f"landing {affected.asked.landing_id}"
            raise UsageError(
                f"{store.name} has an interrupted erasure of {subject}. Complete it first: run the same `iosig forget` "
                "again."
            )
        return affected
    request = ErasureRequest(request.landing_id, _pseudonymize_user(store, settings, request.user), request.reason)
    landed = ledger.read(store)
    own_data = None if request.user is None else find_own(store, request.user)
    landings = _find_landing(landed, request.landing_id) if own_data is None else _find_user_landings(landed, own_data)
    kept_releases = releases.list_readable(store)
    landing_ids = {
        release.release_id: sorted({*releases.landings_in(store, release)} & landings.keys())
        for release in kept_releases
    }
    at = datetime.now(UTC).isoformat(timespec="seconds")
    return AffectedData(request, at, landings, {name: tuple(ids) for name, ids in landing_ids.items() if ids}, own_data)


def _pseudonymize_user(store: Store, settings: Settings, user: str | None) -> str | None:
    """Return a user's name as it is stored: as a pseudonym if the warehouse uses pseudonyms."""
    names = names_in(store, settings)
    return user if names is None or user is None else names.name(user)


def _find_landing(landed: ledger.Ledger, landing_id: str | None) -> dict[str, str]:
    """Map the ids of all generations of a landing's content to the id of an empty next generation."""
    matches = [*landed.objects(landed.select_landings([landing_id or ""]))]
    if not matches:
        raise UsageError(f"Unknown landing {landing_id}. `iosig sql` and `iosig releases --json` list landings.")
    content = matches[0].content_sha256
    same_content = landed.landings.filter(pl.col("content") == int(matches[0].trace_id, 16)).sort("generation")
    generations = [landing for landing in landed.objects(same_content) if landing.content_sha256 == content]
    if generations[-1].forgotten_at and not generations[-1].parts:
        raise NothingToDo(f"{landing_id} was erased on {generations[-1].forgotten_at[:10]}.")
    empty = id_in(content, generations[-1].generation + 1)
    return {landing.landing_id: empty for landing in generations}


def _find_user_landings(landed: ledger.Ledger, own_data: OwnData) -> dict[str, str]:
    """Map the ids of landings with rows or the name of a user to the ids of their next generations."""
    landings: dict[str, str] = {}
    last: dict[str, int] = {}
    for landing in landed.objects(landed.landings.sort("content", "generation")):
        last[landing.content_sha256] = max(landing.generation, last.get(landing.content_sha256, 0))
    for landing in landed.objects(landed.landings.sort("content", "generation")):
        rows = ((part.table, forgetting.read_rows(landed.store, landing, part)) for part in landing.parts)
        if own_data.has(landing, rows):
            last[landing.content_sha256] += 1
            landings[landing.landing_id] = id_in(landing.content_sha256, last[landing.content_sha256])
    if not landings and not landed.store.journal.is_file():
        raise NothingToDo("The warehouse has no data of this user.")
    return landings


def forget(store: Store, settings: Settings, affected: AffectedData, report: Report) -> None:
    """Remove the data that `find` returned. The caller must hold the warehouse lock."""
    put_state(store, _INTENT, affected.document)
    old = [*_there(store, affected.landings)]
    for landing in old:
        _leave(store, landing, affected)
    holds.rename(store, affected.landings)
    if affected.own is not None and store.journal.is_file():
        with Journal(store.journal) as journal:
            report("journal of predictions", journal.forget(affected.own.is_followed), 0.0)
    for release_id, landing_ids in affected.releases.items():
        if release_id not in {release.release_id for release in releases.list_readable(store)}:
            # an earlier attempt has published the successor
            redirects.finish(store, releases.find(store, release_id))
            continue
        release = releases.find(store, release_id)
        successor = _replace_release(store, settings, release, affected, landing_ids, report)
        report(f"{release_id} is replaced by {successor.release_id}", len(successor.snapshots), 0.0)
    _end(store, affected, old)


def _there(store: Store, landing_ids: Collection[str]) -> Iterator[Landing]:
    landed = ledger.read(store)
    selection = landed.landings.filter(pl.col("landing_id").is_in(list(landing_ids)))
    yield from landed.objects(selection.sort("content", "generation"))


def _leave(store: Store, landing: Landing, affected: AffectedData) -> None:
    """Write the remaining rows of a landing as its next generation."""
    own_data = affected.own

    def remove_rows(of_landing: Landing, table: Table, rows: pl.DataFrame) -> pl.DataFrame:
        return rows.clear() if own_data is None else own_data.remove_rows(table, rows)

    generation = int(affected.landings[landing.landing_id].partition("-")[2])
    name = landing.trace_id if own_data is None else own_data.remove_name(landing.source_file)
    forgetting.leave(store, landing, generation, remove_rows, name, affected.at)


# ---- releases


def _replace_release(
    store: Store, settings: Settings, old: Release, affected: AffectedData, landing_ids: tuple[str, ...], report: Report
) -> Release:
    """Rebuild a release from the remaining rows of its landings, and replace it."""
    old_settings = _restore_settings(old, settings)
    with executors.with_processes(old_settings.engine.worker_count) as engine:
        run = begin_run(
            store, old_settings, make_plan(store, old_settings, start=_start(store, old, affected, landing_ids))
        )
        for result in build(run, engine):
            report(result.name, result.row_count, result.duration_s)
    _tell_changes_as_before(run, old)
    draft, built = releasing.make_draft(run, STEPS)
    successor = redirects.supersede(store, old, draft, built, affected.landings, affected.asked.reason)
    docs.complete(store)
    return successor


def _restore_settings(old: Release, settings: Settings) -> Settings:
    """Return the current settings with the parameters of a release, as far as its tables depend on them."""
    merged = settings.model_dump()
    for section, values in get_settings(old).items():
        current = merged.get(section)
        merged[section] = current | values if isinstance(current, dict) and isinstance(values, dict) else values
    try:
        return Settings.model_validate(merged)
    except ValidationError:
        # the release has settings of an older iosig: rebuild it entirely with the current ones
        return settings


def _start(store: Store, old: Release, affected: AffectedData, read_ids: tuple[str, ...]) -> Start:
    """Return the start of a rebuild's plan, with the landings that the release read and their next generations."""
    new_ids = {affected.landings[name] for name in read_ids}
    # releases that were replaced before already name the next generations
    known_ids = ({*releases.landings_in(store, old)} - {*affected.landings.values()}) | {*read_ids}
    landed = ledger.read(store).where(pl.col("landing_id").is_in(sorted(known_ids | new_ids)))
    return Start(old, pl.Series("landing_id", sorted(known_ids), pl.String), landed)


def _tell_changes_as_before(run: Run, old: Release) -> None:
    """Restore the change columns of unchanged signatures from the old release, and set those of the others to NULL.

    The rebuild has compared signatures with the release that is being replaced, not with its predecessor.
    """
    path = run.path(SIGNATURES, None)
    if not path.is_file():
        return
    before = [read_parquet(run.store.here(file)) for file in releases.files_of(run.store, old).get(SIGNATURES.name, [])]
    rebuilt = read_parquet(path)
    unchanged_columns = [name for name in SIGNATURES.column_names if name not in CHANGES]
    previous = pl.concat(before) if before else rebuilt.clear()
    rows = rebuilt.select(unchanged_columns).join(
        previous, on=unchanged_columns, how="left", nulls_equal=True, maintain_order="left"
    )
    path.unlink()
    write_parquet(rows.select(SIGNATURES.column_names), SIGNATURES, path)
    run.store.files.push([run.place(path)])


# ---- the end


def _end(store: Store, affected: AffectedData, old: list[Landing]) -> None:
    """Remove the replaced releases and landings, and all files and state derived from them."""
    for release_id in affected.releases:
        redirects.remove(store, release_id, releases.find(store, release_id))
    deadline = time.monotonic() + _READERS_S
    while True:
        expiring.remove(store, 0.0)
        if not expiring.waiting_count(store):
            break
        if time.monotonic() > deadline:
            raise MachineFault("A release to be deleted is being read. Wait for the reader to finish, and run again.")
        time.sleep(1.0)
    removed, created = forgetting.remove(store, old)
    new = [in_folder(store, name)[0].manifest for name in sorted({*affected.landings.values()})]
    seals.unseal(store, set(removed))
    if (current := releases.current(store)) is not None:
        seals.add(store, current, [*created, *new])
    ledger.forget(store)
    publishing.abandon(store)
    store.files.remove("builds/*", f"{store.data_docs.name}/refused")
    put_state(store, _INTENT, None)


def not_erased(store: Store) -> list[str]:
    """List the copies that this command cannot erase."""
    copies = ["backups and copies of the warehouse", "exports, figures and messages made from it", "the inputs"]
    copies += ["command output kept by Prefect, cron and system journals"]
    return copies + (
        [f"{store.name}/{DAMAGED_FOLDER}, which contains damaged files"] if store.files.holds(DAMAGED_FOLDER) else []
    )
