"""Look up signatures for advice in a release or, on hosts without the warehouse, in an exported feed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import polars as pl
from pydantic import BaseModel, ConfigDict, Field, NonNegativeFloat, ValidationError, model_validator

from iosig.answers.advice.feed import VALID_DAYS, average_by_volume
from iosig.answers.advice.inputs import KnownSignature, Rates, utc
from iosig.answers.documents import format_faults
from iosig.transforms.signatures.signature import Signature
from iosig.warehouse.contracts import frames
from iosig.warehouse.contracts.signatures import SIGNATURES
from iosig.warehouse.errors import InputRefused
from iosig.warehouse.releases.releases import Release
from iosig.warehouse.store.store import Store

_MAX_FEED_BYTES = 1 << 30
#: maximum duration of a run [s]; bounds the memory for edges
_MAX_DURATION_S = 31 * 86_400.0
_MAX_LISTED = 5


class ReleaseSignatures:
    """The default signatures of a release, as curves with one value per second; empty without a release."""

    def __init__(self, store: Store, release: Release | None) -> None:
        """Read the rows of `signatures`; `find` reads the curves on demand."""
        from iosig.estimates.signatures.published import defaults
        from iosig.warehouse.releases.reading import open_release

        self.store, self.release = store, release
        self._rows, self._sample_counts = frames.empty(SIGNATURES), dict[str, int]()
        if release is None:
            return
        with open_release(store, release, "signatures applications") as connection:
            self._rows = defaults(connection)
            sample_counts = connection.sql("select application_id, sample_count from applications").fetchall()
        self._sample_counts = dict(sample_counts)

    def application_ids(self) -> Sequence[str]:
        """Return the ids of applications with a signature, sorted."""
        names: list[str] = self._rows_with_signature()["application_id"].unique().sort().to_list()
        return names

    def list_without_signature(self) -> Sequence[str]:
        """Return the ids of known applications without a signature, sorted."""
        all_ids = {*self._rows["application_id"], *self._sample_counts}
        return sorted(all_ids - set(self.application_ids()))

    def find(self, application_ids: Iterable[str]) -> dict[str, dict[str, KnownSignature]]:
        """Return signatures by application and file system; applications without a signature are omitted."""
        from iosig.estimates.signatures.published import TABLES, read_signatures
        from iosig.warehouse.releases.reading import open_release

        rows = self._rows_with_signature().filter(pl.col("application_id").is_in(list(application_ids)))
        if self.release is None or rows.is_empty():
            return {}
        with open_release(self.store, self.release, TABLES) as connection:
            curves = read_signatures(connection, rows)
        parts: dict[tuple[str, str], list[tuple[dict[str, Any], Signature]]] = {}
        for row, curve in zip(rows.iter_rows(named=True), curves, strict=True):
            parts.setdefault((row["application_id"], row["filesystem"]), []).append((row, curve))
        outcomes = self._outcomes(application_ids)
        signatures: dict[str, dict[str, KnownSignature]] = {}
        for (application_id, filesystem), subject_parts in parts.items():
            signature = _combine_curves(application_id, filesystem, subject_parts, outcomes[application_id, filesystem])
            signatures.setdefault(application_id, {})[filesystem] = signature
        return signatures

    def explain_missing(self, application_id: str) -> str:
        """Explain why an application has no signature, and how to get one."""
        rows = self._rows.filter(pl.col("application_id") == application_id)
        outcomes = [
            f"{row['direction']} on {row['filesystem']}: {row['outcome']}" for row in rows.iter_rows(named=True)
        ]
        count = self._sample_counts.get(application_id)
        evidence = [f"samples of {count} of its runs"] if count is not None else []
        evidence += ["the outcomes " + ", ".join(outcomes[:_MAX_LISTED])] if outcomes else []
        if rows.height and (rows["outcome"] == "no_io").all():
            listed = ", ".join(outcomes[:_MAX_LISTED])
            return f"It has no I/O that is visible to storage ({listed}): any file system will do."
        return (
            f"There are {' and '.join(evidence) or 'no samples of it'}. Land more of its runs with polls of the same "
            "time, then `iosig run`; or enable signatures over all node counts (has_merged_sizes in the settings)."
        )

    def _rows_with_signature(self) -> pl.DataFrame:
        return self._rows.filter(pl.col("outcome") == "extracted")

    def _outcomes(self, application_ids: Iterable[str]) -> dict[tuple[str, str], dict[str, str]]:
        outcomes: dict[tuple[str, str], dict[str, str]] = {}
        for row in self._rows.filter(pl.col("application_id").is_in(list(application_ids))).iter_rows(named=True):
            outcomes.setdefault((row["application_id"], row["filesystem"]), {})[row["direction"]] = row["outcome"]
        return outcomes


def _combine_curves(
    application_id: str,
    filesystem: str,
    parts: Sequence[tuple[Mapping[str, Any], Signature]],
    outcomes: Mapping[str, str],
) -> KnownSignature:
    """Combine the curves of both directions into the signature of an application on a file system."""
    confidences = [(curve.volume_bytes, _confidence(row, curve)) for row, curve in parts]
    last_run_ended_at = min(row["last_run_ended_at"] for row, _ in parts).replace(microsecond=0)
    return KnownSignature(
        application_id=application_id,
        filesystem=filesystem,
        rates=Rates.sum_of([Rates.of_curve(curve.bytes_per_s) for _, curve in parts]),
        basis="curve",
        outcomes=outcomes,
        method=parts[0][0]["method"],
        confidence=average_by_volume(confidences),
        expected_correlation=average_by_volume(
            [(curve.volume_bytes, row.get("expected_correlation")) for row, curve in parts]
        ),
        sample_count=min(row["sample_count"] for row, _ in parts),
        last_run_ended_at=last_run_ended_at,
        valid_until=last_run_ended_at + timedelta(days=VALID_DAYS),
    )


def _confidence(row: Mapping[str, Any], curve: Signature) -> float | None:
    """Return the probability that the next run moves a given byte at its predicted time, as in a feed."""
    bursts = curve.bursts
    if not len(bursts) or not np.isfinite(bursts.support_ratio).all() or not bursts.volume_bytes.sum() > 0:
        return None
    probabilities = (bursts.support_ratio * row["used_sample_count"] + 1) / (row["sample_count"] + 2)
    return float(np.average(probabilities, weights=bursts.volume_bytes))


_Share = Annotated[float, Field(ge=0, le=1)]


class _Part(BaseModel):
    model_config = ConfigDict(allow_inf_nan=False)


class _Burst(_Part):
    start_s: NonNegativeFloat
    duration_s: NonNegativeFloat
    volume_bytes: NonNegativeFloat


class _Entry(_Part):
    application_id: str
    filesystem: str
    direction: str
    method: str
    last_run_ended_at: datetime
    valid_until: datetime
    confidence: _Share | None
    expected_correlation: _Share | None = None
    sample_count: int
    duration_s: Annotated[float, Field(ge=0, le=_MAX_DURATION_S)] | None
    bursts: Annotated[list[_Burst], Field(min_length=1)]

    @model_validator(mode="after")
    def _check_duration(self) -> _Entry:
        if max(burst.start_s + burst.duration_s for burst in self.bursts) > _MAX_DURATION_S:
            raise ValueError(f"has bursts that end after more than {_MAX_DURATION_S:g} s")
        return self

    @property
    def rates(self) -> Rates:
        """Bursts as rates, extended to 1 s, which is the resolution of a signature."""
        columns = np.array([(burst.start_s, burst.duration_s, burst.volume_bytes) for burst in self.bursts]).T
        return Rates.of_bursts(columns[0], np.maximum(columns[1], 1.0), columns[2], self.duration_s or 0.0)


class _Feed(_Part):
    format: Literal["iosig-feed/1"]
    kind: Literal["signatures"]
    release_id: str | None = None
    entries: list[_Entry]


class FeedSignatures:
    """The signatures of a feed (docs/scheduler-feed.md), as bursts at their mean rates."""

    def __init__(self, path: Path) -> None:
        """Read a feed of signatures; raises InputRefused with the location of the error if it is invalid."""
        feed = _read(path)
        self.release_id: str = str(feed.release_id)
        self._entries: dict[tuple[str, str], list[_Entry]] = {}
        for entry in feed.entries:
            self._entries.setdefault((entry.application_id, entry.filesystem), []).append(entry)

    def application_ids(self) -> Sequence[str]:
        """Return the ids of applications with a signature, sorted."""
        return sorted({application_id for application_id, _ in self._entries})

    def list_without_signature(self) -> Sequence[str]:
        """Return an empty list, since a feed contains only applications with a signature."""
        return []

    def find(self, application_ids: Iterable[str]) -> dict[str, dict[str, KnownSignature]]:
        """Return signatures by application and file system; applications without a signature are omitted."""
        ids = set(application_ids)
        signatures: dict[str, dict[str, KnownSignature]] = {}
        for (application_id, filesystem), entries in self._entries.items():
            if application_id in ids:
                signatures.setdefault(application_id, {})[filesystem] = _combine_bursts(
                    application_id, filesystem, entries
                )
        return signatures

    def explain_missing(self, application_id: str) -> str:
        """Explain how to get a newer feed, since the application is not in this one."""
        return (
            f"The feed does not contain {application_id}: it has no signature, or its last run is too long ago. "
            "Export the feed again after the next night: `iosig export signatures --feed --output FILE`."
        )


def _read(path: Path) -> _Feed:
    try:
        if path.stat().st_size > _MAX_FEED_BYTES:
            raise _refuse(path, f"it is larger than {_MAX_FEED_BYTES:,} bytes")
        return _Feed.model_validate(json.loads(path.read_bytes()))
    except OSError as error:
        raise _refuse(path, f"it cannot be read ({error.strerror})") from error
    except ValidationError as error:
        raise _refuse(path, format_faults(error)) from error
    except (ValueError, RecursionError) as error:
        raise _refuse(path, f"it is not JSON ({error})") from error


def _refuse(path: Path, reason: str) -> InputRefused:
    return InputRefused(
        f"{path} is refused: {reason}.", "Create it with `iosig export signatures --feed --output FILE.json`."
    )


def _combine_bursts(application_id: str, filesystem: str, entries: Sequence[_Entry]) -> KnownSignature:
    rates = [entry.rates for entry in entries]
    volumes = [curve.volume_bytes for curve in rates]
    return KnownSignature(
        application_id=application_id,
        filesystem=filesystem,
        rates=Rates.sum_of(rates),
        basis="bursts",
        outcomes={entry.direction: "extracted" for entry in entries},
        method=entries[0].method,
        confidence=average_by_volume(list(zip(volumes, (entry.confidence for entry in entries), strict=True))),
        expected_correlation=average_by_volume(
            list(zip(volumes, (entry.expected_correlation for entry in entries), strict=True))
        ),
        sample_count=min(entry.sample_count for entry in entries),
        last_run_ended_at=min(utc(entry.last_run_ended_at) for entry in entries),
        valid_until=min(utc(entry.valid_until) for entry in entries),
    )
