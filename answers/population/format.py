"""A population as tables of texts, and for programs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field

from iosig.answers.documents import Day, Document
from iosig.answers.population.query import Population
from iosig.warehouse.contracts.columns import LABEL

#: as the paper has them, and those without a label last
LABELS = ("HILL", "START", "END", "UNIFORM", "OTHER", "CANYON", "NO_USAGE")
assert set(LABELS) == set(LABEL.choices)
_NONE = "none"


def label_rows(told: Population) -> list[tuple[str | int, ...]]:
    """Return Table 1: a row for each write class, with its runs by read class; classes that nobody has are left out."""
    counts = {(write or _NONE, read or _NONE): count for write, read, count in told.labels().iter_rows()}
    rows = [name for name in (*LABELS, _NONE) if any(write == name for write, _ in counts)]
    return [(name, *(counts.get((name, read), 0) for read in (*LABELS, _NONE))) for name in rows]


def share_rows(told: Population, column: str) -> list[tuple[str | float | None, ...]]:
    """Return Table 2: a row for each direction, with each class's share [%] and the periodic ones', by that column."""
    rows: list[tuple[str | float | None, ...]] = []
    for (direction,), part in told.shares().group_by("direction", maintain_order=True):
        shares: Mapping[str, float | None] = dict(part.select("label", column).iter_rows())
        periodic = part["periodic_ratio"][0] if column == "run_ratio" else None
        rows.append((str(direction), *(_percent(shares.get(name, 0.0)) for name in LABELS), _percent(periodic)))
    return rows


def agreement(told: Population) -> tuple[int, float] | None:
    """Return of how many runs both a measured and an inferred class are known, and the share in which they agree."""
    count = int(told.agreement["run_count"].sum())
    if not count:
        return None
    alike = told.agreement.filter(told.agreement["measured_label"] == told.agreement["inferred_label"])
    return count, int(alike["run_count"].sum()) / count


class PopulationDocument(Document, title="iosig population"):
    """How all runs do their I/O."""

    format: Literal["iosig-population/1"] = "iosig-population/1"
    release_id: str = Field(description="the release")
    since: Day | None = Field(description="the first day")
    until: Day | None = Field(description="the last day")
    by: str = Field(description="what runs are put together by")
    run_count: int = Field(description="runs [runs]")
    node_hours: float = Field(description="what they took [node hours]")
    measured_bytes: float = Field(description="what file systems moved [B]")
    classes: list[Any] = Field(description="runs by class of their writes and reads")
    shares: list[Any] = Field(description="shares of classes")
    bases: list[Any] = Field(description="runs whose class is counted, traced, of a series, or inferred")
    unclassified: list[Any] = Field(description="runs without a class, by outcome")
    groups: list[Any] = Field(description="by application, user or account")
    group_count: int = Field(description="how many of them there are")
    reference_sources: list[Any] = Field(description="what tells of a run's own bytes")
    compared_count: int = Field(description="runs with a measured and an inferred class")
    agreement_ratio: float | None = Field(description="share of these whose classes agree [1]")
    periods_s: dict[str, list[float | None]] = Field(description="direction = periods")
    days: list[Any] = Field(description="by day")


def document(told: Population, max_count: int, release_id: str) -> PopulationDocument:
    """Return a population for programs: so many groups at most."""
    both, groups = agreement(told), told.groups()
    return PopulationDocument(
        release_id=release_id,
        since=told.asked.since,
        until=told.asked.until,
        by=told.asked.by,
        run_count=told.run_count,
        node_hours=told.node_hours,
        measured_bytes=told.measured_bytes,
        classes=told.labels().to_dicts(),
        shares=told.shares().to_dicts(),
        bases=told.bases().to_dicts(),
        unclassified=told.unclassified().to_dicts(),
        groups=groups.head(max_count).drop("label_count").to_dicts(),
        group_count=groups.height,
        reference_sources=told.reference_sources().to_dicts(),
        compared_count=both[0] if both else 0,
        agreement_ratio=both[1] if both else None,
        periods_s={name: told.periods(name).sort().to_list() for name in ("read", "write")},
        days=told.days().to_dicts(),
    )


def _percent(ratio: float | None) -> float | None:
    return None if ratio is None else float(f"{100 * ratio:.3g}")
