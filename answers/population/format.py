"""Format a population as rows of printed tables, and as a JSON document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import polars as pl
from pydantic import Field

from iosig.answers.documents import Day, Document
from iosig.answers.population.query import Population
from iosig.warehouse.contracts.columns import LABEL

#: classes in the order of the paper, NO_USAGE last
LABELS = ("HILL", "START", "END", "UNIFORM", "OTHER", "CANYON", "NO_USAGE")
assert set(LABELS) == set(LABEL.choices)
_NONE = "none"


def format_labels(population: Population) -> list[tuple[str | int, ...]]:
    """Return run counts by write class (rows) and read class (columns), Table 1, without rows of zeros."""
    counts = {(write or _NONE, read or _NONE): count for write, read, count in population.labels().iter_rows()}
    rows = [name for name in (*LABELS, _NONE) if any(write == name for write, _ in counts)]
    return [(name, *(counts.get((name, read), 0) for read in (*LABELS, _NONE))) for name in rows]


def format_shares(population: Population, column: str) -> list[tuple[str | float | None, ...]]:
    """Return, for each direction, the percentage of each class and of periodic runs (Table 2).

    column: the fraction to format, of runs or of bytes; only runs have a percentage of periodic ones.
    """
    rows: list[tuple[str | float | None, ...]] = []
    for (direction,), part in population.shares().group_by("direction", maintain_order=True):
        shares: Mapping[str, float | None] = dict(part.select("label", column).iter_rows())
        periodic = part["periodic_ratio"][0] if column == "run_ratio" else None
        rows.append((str(direction), *(_percent(shares.get(name, 0.0)) for name in LABELS), _percent(periodic)))
    return rows


def measure_agreement(population: Population) -> tuple[int, float] | None:
    """Return the number of runs with a measured and an inferred class, and the fraction that agree."""
    count = int(population.agreement["run_count"].sum())
    if not count:
        return None
    matching = population.agreement.filter(
        population.agreement["measured_label"] == population.agreement["inferred_label"]
    )
    return count, int(matching["run_count"].sum()) / count


def summarize_repeats(population: Population) -> list[tuple[Any, ...]]:
    """Return user, largest node count, runs, configurations, and the most frequent configuration with its runs."""
    configuration = pl.format("{}/{}", pl.col("application").fill_null("unknown"), "node_count")
    by_user = population.repeats.group_by("user", maintain_order=True).agg(
        pl.col("node_count").max(),
        pl.col("run_count").sum(),
        configuration_count=pl.len(),
        configuration=configuration.first(),
        max_run_count=pl.col("run_count").first(),
    )
    return by_user.rows()


class PopulationDocument(Document, title="iosig population"):
    """I/O statistics of all runs."""

    format: Literal["iosig-population/1"] = "iosig-population/1"
    release_id: str = Field(description="the release")
    since: Day | None = Field(description="the first day")
    until: Day | None = Field(description="the last day")
    by: str = Field(description="grouping of the runs")
    run_count: int = Field(description="runs [runs]")
    node_hours: float = Field(description="node hours of the runs [node hours]")
    measured_bytes: float = Field(description="bytes that the file systems moved [B]")
    classes: list[Any] = Field(description="runs by write class and read class")
    shares: list[Any] = Field(description="shares of classes")
    bases: list[Any] = Field(description="runs by basis of their class: counted, traced, series or inferred")
    unclassified: list[Any] = Field(description="runs without a class, by outcome")
    groups: list[Any] = Field(description="by application, user, account or duration")
    group_count: int = Field(description="number of groups")
    reference_sources: list[Any] = Field(description="sources of the runs' own bytes")
    compared_count: int = Field(description="runs with a measured and an inferred class")
    agreement_ratio: float | None = Field(description="fraction of these with equal classes [1]")
    periods_s: dict[str, list[float | None]] = Field(description="direction = periods")
    days: list[Any] = Field(description="by day")
    repeats: list[Any] = Field(
        description="runs by configuration (user, application, node count) of the users with the largest jobs"
    )


def build_document(population: Population, max_count: int, release_id: str) -> PopulationDocument:
    """Build the JSON document with at most `max_count` groups."""
    agreement, groups = measure_agreement(population), population.groups()
    return PopulationDocument(
        release_id=release_id,
        since=population.query.since,
        until=population.query.until,
        by=population.query.by,
        run_count=population.run_count,
        node_hours=population.node_hours,
        measured_bytes=population.measured_bytes,
        classes=population.labels().to_dicts(),
        shares=population.shares().to_dicts(),
        bases=population.bases().to_dicts(),
        unclassified=population.count_without_class().to_dicts(),
        groups=groups.head(max_count).drop("label_count").to_dicts(),
        group_count=groups.height,
        reference_sources=population.reference_sources().to_dicts(),
        compared_count=agreement[0] if agreement else 0,
        agreement_ratio=agreement[1] if agreement else None,
        periods_s={name: population.periods(name).sort().to_list() for name in ("read", "write")},
        days=population.days().to_dicts(),
        repeats=population.repeats.to_dicts(),
    )


def _percent(ratio: float | None) -> float | None:
    return None if ratio is None else float(f"{100 * ratio:.3g}")
