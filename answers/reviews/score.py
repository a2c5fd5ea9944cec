"""Score classes and periods of a release by the landed reviews (PEARC'18, section 5).

A verdict is compared with the class that the release has now, so the same reviews can judge other settings. Verdicts
"unsure" are counted but not scored.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

import polars as pl
from pydantic import Field
from scipy.stats import binomtest

from iosig.answers.documents import Document, Part
from iosig.warehouse.contracts.reviews import UNSURE
from iosig.warehouse.errors import NothingToDo
from iosig.warehouse.releases.reading import open_release
from iosig.warehouse.releases.releases import Release
from iosig.warehouse.store.store import Store

if TYPE_CHECKING:
    import duckdb

_CONFIDENCE_LEVEL = 0.95
#: maximum relative difference between a reviewed period and the release's
_MAX_PERIOD_CHANGE = 0.01


class Score(Part):
    """Share of correct classes or periods in one direction."""

    direction: str = Field(description="read or write")
    review_count: int = Field(description="reviews with a verdict [reviews]")
    correct_count: int = Field(description="reviews that confirm the class or period [reviews]")
    correct_ratio: float = Field(description="share of these [1]")
    low_ratio: float = Field(description="lower limit of the 95 % Wilson interval of the share [1]")
    high_ratio: float = Field(description="upper limit of the interval [1]")


class LabelScore(Score):
    """Share of correct classes, of one class or of all."""

    basis: str = Field(description="basis of the classes: counted, traced, series, signature or inferred")
    label: str | None = Field(description="class in the release; null for all classes")


class _Confusion(Part):
    direction: str = Field(description="read or write")
    label: str = Field(description="class in the release")
    label_verdict: str = Field(description="class by the reviewer")
    review_count: int = Field(description="reviews with both [reviews]")


class ScoresDocument(Document, title="iosig verify-classes"):
    """Accuracy of classes and periods by manual verification."""

    format: Literal["iosig-review-scores/1"] = "iosig-review-scores/1"
    release_id: str = Field(description="the release")
    reviewer_count: int = Field(description="reviewers [reviewers]")
    review_count: int = Field(description="reviews, each of a run, file system and direction [reviews]")
    unsure_count: int = Field(description="reviews without a class because the reviewer was unsure [reviews]")
    unmatched_count: int = Field(description="reviews of runs that have no class in the release [reviews]")
    agreement_ratio: float | None = Field(
        description="share of runs with equal verdicts, among runs with several reviewers; null without any [1]"
    )
    classes: list[LabelScore] = Field(description="accuracy by direction and class, and of all classes")
    confusion: list[_Confusion] = Field(description="reviews by class and verdict")
    periods: list[Score] = Field(description="accuracy of periods that the release still has, by direction")


def read_scores(store: Store, release: Release) -> ScoresDocument:
    """Compare all reviews with the classes and periods of a release; raises NothingToDo without reviews."""
    with open_release(store, release, "class_reviews classes periods") as connection:
        scores = query_scores(connection, release.release_id)
    if not scores.review_count:
        raise NothingToDo(
            f"Release {release.release_id} has no reviews. `iosig verify-classes --page FILE` writes a page for them."
        )
    return scores


def query_scores(connection: duckdb.DuckDBPyConnection, release_id: str) -> ScoresDocument:
    """Compare all reviews with the classes and periods in the tables of a release."""
    reviews = pl.DataFrame(connection.sql(_REVIEWS, params={"max_change": _MAX_PERIOD_CHANGE}).to_arrow_table())
    is_sure = pl.col("label_verdict") != UNSURE
    scored = reviews.filter(is_sure & pl.col("label").is_not_null())
    pairs = scored.group_by("direction", "label", "label_verdict").agg(review_count=pl.len())
    return ScoresDocument(
        release_id=release_id,
        reviewer_count=reviews["reviewer"].n_unique(),
        review_count=reviews.height,
        unsure_count=int((reviews["label_verdict"] == UNSURE).sum()),
        unmatched_count=reviews["label"].null_count(),
        agreement_ratio=_measure_agreement(reviews.filter(is_sure)),
        classes=_score_classes(scored),
        confusion=[
            _Confusion.model_validate(row) for row in pairs.sort("direction", "label", "label_verdict").to_dicts()
        ],
        periods=_score_periods(reviews),
    )


def _score_classes(scored: pl.DataFrame) -> list[LabelScore]:
    is_correct = pl.col("label") == pl.col("label_verdict")
    counts = (pl.len().alias("review_count"), is_correct.sum().alias("correct_count"))
    by_class = scored.group_by("direction", "basis", "label").agg(*counts)
    of_all = scored.group_by("direction", "basis").agg(pl.lit(None, pl.String).alias("label"), *counts)
    rows = pl.concat([by_class, of_all]).sort("direction", "basis", "label", nulls_last=True)
    return [LabelScore.model_validate(row | _interval(row)) for row in rows.to_dicts()]


def _score_periods(reviews: pl.DataFrame) -> list[Score]:
    decided = reviews.filter(pl.col("has_reviewed_period") & pl.col("period_verdict").is_in(["correct", "incorrect"]))
    rows = decided.group_by("direction").agg(
        review_count=pl.len(), correct_count=(pl.col("period_verdict") == "correct").sum()
    )
    return [Score.model_validate(row | _interval(row)) for row in rows.sort("direction").to_dicts()]


def _interval(row: Mapping[str, Any]) -> dict[str, float]:
    """Return the share of correct reviews with its Wilson interval."""
    limits = binomtest(row["correct_count"], row["review_count"]).proportion_ci(_CONFIDENCE_LEVEL, method="wilson")
    return {
        "correct_ratio": row["correct_count"] / row["review_count"],
        "low_ratio": float(limits.low),
        "high_ratio": float(limits.high),
    }


def _measure_agreement(decided: pl.DataFrame) -> float | None:
    """Return the share of runs on which all reviewers agree, among runs with several reviewers."""
    run = ["cluster", "subject_kind", "subject_id", "started_at", "filesystem", "direction"]
    shared = decided.group_by(run).agg(reviewer_count=pl.len(), verdict_count=pl.col("label_verdict").n_unique())
    shared = shared.filter(pl.col("reviewer_count") > 1)
    return None if shared.is_empty() else float((shared["verdict_count"] == 1).sum()) / shared.height


_REVIEWS = """
    with classified as (
        select * from classes
        where outcome = 'classified'
    ),

    chosen_periods as (
        select * from periods
        where is_default and outcome = 'periodic'
    )

    select
        class_reviews.*,
        classified.label,
        classified.basis,
        coalesce(
            abs(chosen_periods.period_s / class_reviews.proposed_period_s - 1) <= $max_change, false
        ) as has_reviewed_period
    from class_reviews
    left join classified
        on class_reviews.subject_kind = classified.subject_kind
        and class_reviews.subject_id = classified.subject_id
        and class_reviews.direction = classified.direction
        and class_reviews.cluster is not distinct from classified.cluster
        and class_reviews.started_at is not distinct from classified.started_at
        and class_reviews.filesystem is not distinct from classified.filesystem
    left join chosen_periods
        on class_reviews.subject_kind = chosen_periods.subject_kind
        and class_reviews.subject_id = chosen_periods.subject_id
        and class_reviews.direction = chosen_periods.direction
        and class_reviews.cluster is not distinct from chosen_periods.cluster
        and class_reviews.started_at is not distinct from chosen_periods.started_at
        and class_reviews.filesystem is not distinct from chosen_periods.filesystem
    order by all
"""
