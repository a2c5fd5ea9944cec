"""Test the scores of classes and periods by reviews: shares, intervals, unsure and unmatched reviews, agreement."""

from __future__ import annotations

import math

import pytest

from iosig.answers.reviews.score import LabelScore, ScoresDocument, query_scores
from tests.warehouse.releasing import Content, opened_tables

TABLES: dict[str, Content] = {
    "classes": {
        9: """
            subject_kind cluster subject_id started_at filesystem direction ended_on basis outcome label
            job cluster 1 09:00:00 lake write 9 counted classified UNIFORM
            job cluster 2 09:00:00 lake write 9 counted classified UNIFORM
            job cluster 3 09:00:00 lake write 9 inferred classified START
            job cluster 4 09:00:00 lake write 9 inferred too_short .
            """
    },
    "periods": {
        9: """
            subject_kind cluster subject_id started_at filesystem direction ended_on is_default outcome  period_s
            job          cluster 1          09:00:00   lake       write     9        yes        periodic 20
            job          cluster 2          09:00:00   lake       write     9        yes        periodic 40
            """
    },
}
REVIEWS = """
    subject_kind cluster subject_id started_at filesystem direction reviewer label_verdict \
        proposed_period_s period_verdict
    job cluster 1 09:00:00 lake write ann UNIFORM 20.1 correct
    job cluster 2 09:00:00 lake write ann HILL    20.1 correct
    job cluster 3 09:00:00 lake write ann START   .    .
    job cluster 4 09:00:00 lake write ann END     .    .
    job cluster 1 09:00:00 lake write bob UNIFORM 20   incorrect
    job cluster 2 09:00:00 lake write bob UNIFORM 40   unsure
    job cluster 3 09:00:00 lake write bob unsure  .    .
    """


def score(reviews: str) -> ScoresDocument:
    with opened_tables(TABLES | {"class_reviews": {None: reviews}}) as connection:
        return query_scores(connection, "release")


def wilson(correct: int, count: int) -> tuple[float, float]:
    """Closed form of the 95 % interval (Wilson 1927)."""
    z, ratio = 1.959963984540054, correct / count
    center = ratio + z**2 / (2 * count)
    half = z * math.sqrt(ratio * (1 - ratio) / count + z**2 / (4 * count**2))
    return (center - half) / (1 + z**2 / count), (center + half) / (1 + z**2 / count)


def find(scores: ScoresDocument, basis: str, label: str | None) -> LabelScore:
    (row,) = (row for row in scores.classes if (row.basis, row.label) == (basis, label))
    return row


def test_shares_of_classes_have_wilson_intervals() -> None:
    counted = find(score(REVIEWS), "counted", None)
    assert (counted.review_count, counted.correct_count, counted.correct_ratio) == (4, 3, 0.75)
    assert (counted.low_ratio, counted.high_ratio) == pytest.approx(wilson(3, 4))
    assert find(score(REVIEWS), "counted", "UNIFORM") == counted.model_copy(update={"label": "UNIFORM"})
    inferred = find(score(REVIEWS), "inferred", "START")
    assert (inferred.review_count, inferred.correct_count) == (1, 1)


def test_confusion_counts_pairs_of_class_and_verdict() -> None:
    pairs = {(row.label, row.label_verdict): row.review_count for row in score(REVIEWS).confusion}
    assert pairs == {("UNIFORM", "UNIFORM"): 3, ("UNIFORM", "HILL"): 1, ("START", "START"): 1}


def test_unsure_and_unmatched_reviews_are_counted_not_scored() -> None:
    scores = score(REVIEWS)
    assert (scores.review_count, scores.reviewer_count) == (7, 2)
    assert (scores.unsure_count, scores.unmatched_count) == (1, 1)


def test_agreement_is_measured_on_runs_with_several_reviewers() -> None:
    assert score(REVIEWS).agreement_ratio == 0.5
    assert score("\n".join(REVIEWS.splitlines()[:5])).agreement_ratio is None


def test_only_periods_that_the_release_still_has_are_scored() -> None:
    (periods,) = score(REVIEWS).periods
    assert (periods.review_count, periods.correct_count) == (2, 1)


def test_release_without_reviews_has_no_scores() -> None:
    scores = score("reviewer")
    assert (scores.review_count, scores.classes, scores.periods, scores.agreement_ratio) == (0, [], [], None)
