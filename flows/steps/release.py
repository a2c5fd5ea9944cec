"""Publish a release, which makes all built and checked tables visible at once, and remove expired data."""

from __future__ import annotations

import filecmp
import shutil
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from iosig.flows.steps.run import Run
from iosig.flows.steps.step import Step
from iosig.settings.model import Settings
from iosig.warehouse.contracts.quality import QUALITY
from iosig.warehouse.engine_paths import read_parquet
from iosig.warehouse.errors import NothingToDo
from iosig.warehouse.releases import expiring, holds, locations, losses, publishing, releases, retention
from iosig.warehouse.releases.locations import Part
from iosig.warehouse.releases.publishing import Adopted, Draft
from iosig.warehouse.releases.releases import Release
from iosig.warehouse.store.store import Store


def release(run: Run, steps: Sequence[Step]) -> Release:
    """Publish all tables that steps have built, as one release, and remove the run's folder.

    Raises NothingToDo if selected steps have built the same files as in the base release.
    """
    from iosig.expectations import docs

    draft, built = make_draft(run, steps)
    if run.plan.selection and run.plan.base and _is_released(run, built):
        _remove_folder(run)
        raise NothingToDo(
            f"The selected tables are identical to those of release {run.plan.base.release_id}: no release is "
            "published."
        )
    published = publishing.publish(run.store, draft, built, run.uploaded)
    if run.plan.settles_rollback:
        holds.settle(run.store)
    losses.settle(run.store, run.plan.losses)
    docs.write_release_docs(run.store, published)
    _remove_folder(run)
    return published


def _remove_folder(run: Run) -> None:
    run.store.files.remove(run.place(run.folder))
    shutil.rmtree(run.folder, ignore_errors=True)


def _is_released(run: Run, built: Mapping[str, Mapping[Part, Path]]) -> bool:
    """Return whether the base release has the same files, byte by byte, for all parts that were built."""
    from iosig.warehouse.releases.catalogue import has_rows

    assert run.plan.base
    base = releases.files_of(run.store, run.plan.base)
    for name, parts in built.items():
        before = {locations.parse_part(path): path for path in base.get(name, [])}
        for part, path in parts.items():
            if has_rows(path) != (part in before):
                return False
            if part in before and not filecmp.cmp(path, run.store.here(before[part]), shallow=False):
                return False
    return True


def adopt(run: Run, steps: Iterable[Step]) -> Adopted:
    """Copy the files that steps have built to their place in a release; return their locations."""
    return publishing.adopt_early(run.store, run.plan.fingerprint, _built(run, steps))


def make_draft(run: Run, steps: Iterable[Step]) -> tuple[Draft, dict[str, dict[Part, Path]]]:
    """Return the description of the release, and the files to publish. Raises GateFailed if checks reject them."""
    from iosig.expectations import gate

    plan, built = run.plan, _built(run, steps, run.uploaded)
    draft = Draft(
        fingerprint=plan.fingerprint,
        dates=plan.days,
        inputs=plan.inputs,
        removed_inputs=plan.removed_inputs,
        parameters=plan.released_parameters,
        code_version=plan.released_code_version,
        verdict=gate.decide(read_parquet(run.path(QUALITY, None))),
        base_release_id=plan.base.release_id if plan.base else None,
        kind=plan.kind,
    )
    return draft, built


def _built(run: Run, steps: Iterable[Step], copied_names: Collection[str] = ()) -> dict[str, dict[Part, Path]]:
    """Return the files of published tables that steps have built, by day or bucket.

    copied_names: tables with files that were already copied to the object store, and need not be fetched.
    """
    hold = holds.in_force(run.store)
    held_back = hold.table_names if hold else ()
    files = {
        table.name: table_files
        for step in steps
        for table, table_files in step.files(run).items()
        if table.is_published and table.name not in held_back
    }
    run.store.files.fetch(file.path for name in files if name not in copied_names for file in files[name])
    return {
        name: {file.day if file.bucket is None else file.bucket: run.store.root / file.path for file in table_files}
        for name, table_files in files.items()
    }


@dataclass(frozen=True, slots=True)
class FreedSpace:
    """Removed data: expired releases, their files, and old raw data."""

    released: expiring.ExpiryResult
    landed: retention.ClearedDays

    def lines(self) -> list[tuple[str, int]]:
        """Return the kinds of removed data with their number; empty if nothing was removed."""
        released, landed = self.released, self.landed
        counts = [
            ("expired releases", len(released.release_ids)),
            ("removed files of expired releases", released.file_count),
            ("removed landings of raw polls", landed.landing_count),
        ]
        return [(name, count) for name, count in counts if count]


def maintain(
    store: Store, settings: Settings, *, keep_releases: int | None = None, grace_s: float | None = None
) -> FreedSpace:
    """Expire releases beyond the retention settings, and remove files of expired releases and old raw data.

    keep_releases: overrides the number of kept releases. grace_s: delay between the expiry of a release and the removal
    of its files [s]; None applies the settings, and removes a limited number of files.
    """
    keep_count = keep_releases or settings.storage.keep_releases
    is_nightly = grace_s is None
    grace = expiring.GRACE_S if grace_s is None else grace_s
    released = expiring.maintain(store, keep_count, grace, is_nightly=is_nightly)
    if grace_s == 0:
        removed = expiring.remove(store, 0.0)
        released = replace(
            released, file_count=released.file_count + removed[0], byte_count=released.byte_count + removed[1]
        )
    keep_days = settings.storage.keep_landed_days
    landed = retention.ClearedDays(0, 0, ()) if keep_days is None else retention.clear(store, keep_days)
    return FreedSpace(released, landed)


def complete(store: Store) -> None:
    """Finish publishing the current release if a run was killed during or right after publication."""
    from iosig.expectations import docs

    publishing.complete(store)
    docs.complete(store)
