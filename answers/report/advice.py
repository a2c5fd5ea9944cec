"""Compute the report's advice: that of `iosig advise` at the last poll, for the largest applications."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import polars as pl

from iosig.answers.advice.landed import site_state
from iosig.answers.advice.query import AdviceResult, Query, advise_on, find_signature
from iosig.answers.advice.signatures import ReleaseSignatures
from iosig.reports.site.advice import AdviceFrames
from iosig.settings.model import Settings
from iosig.warehouse.contracts.jobs import JOB_RECORDS
from iosig.warehouse.contracts.polls import POLLS
from iosig.warehouse.errors import NothingToDo
from iosig.warehouse.releases.releases import Release
from iosig.warehouse.store import ledger
from iosig.warehouse.store.store import Store

if TYPE_CHECKING:
    import duckdb

#: maximum number of applications with advice, those with the largest monthly volume
MAX_APPLICATIONS = 20
_SCHEMA = {
    "application_id": pl.String,
    "place": pl.Int64,
    "filesystem": pl.String,
    "delay_s": pl.Float64,
    **dict.fromkeys(("now_bytes", "then_bytes", "low_then_bytes", "high_then_bytes", "stretch"), pl.Float64),
}


def list_inputs(store: Store, settings: Settings) -> list[object]:
    """Return the inputs of advice other than the release: landings and settings, for the page's fingerprint."""
    landings = ledger.read(store)
    landing_ids = landings.having((POLLS, JOB_RECORDS))["landing_id"].sort().to_list()
    return [landing_ids, settings.advice.model_dump_json(), settings.partitions, settings.filesystems]


def read(
    store: Store, release: Release, settings: Settings, connection: duckdb.DuckDBPyConnection, names: Sequence[str]
) -> AdviceFrames:
    """Return the advice for some applications, or the reason for its absence."""
    (last,) = connection.sql("select max(polled_at) from filesystem_rates").fetchall()[0]
    if last is None:
        return AdviceFrames(None, pl.DataFrame(schema=_SCHEMA), "No polls are in this release.")
    at = last.astimezone(UTC)
    signatures = ReleaseSignatures(store, release)
    try:
        state = site_state(store, release, settings, signatures, at)
    except NothingToDo:
        return AdviceFrames(at, pl.DataFrame(schema=_SCHEMA), "No polls have landed here.")
    known_ids = set(signatures.application_ids())
    results = (_try_advise(name, signatures, state, settings, at) for name in names if name in known_ids)
    rows = pl.DataFrame([row for result in results if result for row in _rows(result)], schema=_SCHEMA)
    reasons = "; ".join(f"{excluded.filesystem}: {excluded.reason}" for excluded in state.excluded)
    return AdviceFrames(at, rows, reasons or None)


def _try_advise(
    name: str, signatures: ReleaseSignatures, state: Any, settings: Settings, at: datetime
) -> AdviceResult | None:
    try:
        return advise_on(find_signature(signatures, name, at), name, state, Query(name), settings.advice, at)
    except NothingToDo:
        return None


def _rows(result: AdviceResult) -> Iterator[dict[str, Any]]:
    for place, (now, best) in enumerate(result.choices, start=1):
        yield {
            "application_id": result.application_id,
            "place": place,
            "filesystem": best.partition,
            "delay_s": best.delay_s,
            "now_bytes": now.contended_bytes,
            "then_bytes": best.contended_bytes,
            "low_then_bytes": best.low_contended_bytes,
            "high_then_bytes": best.high_contended_bytes,
            "stretch": best.stretch,
        }
