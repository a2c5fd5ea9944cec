"""Test stage.class_reviews: the latest review of each run by each reviewer."""

from __future__ import annotations

from iosig.warehouse.contracts.reviews import CLASS_REVIEWS
from tests.sql.given import Select, expect, rows, shuffled

RECORDS = """
    part_order  subject_id  reviewer  reviewed_at  label_verdict
    0           a           ann       08:00        START
    1           a           ann       09:00        HILL
    0           a           bob       07:00        END
    2           b           ann       08:00        OTHER
    1           b           ann       08:00        START
    """


def test_latest_review_of_each_reviewer_wins(select: Select) -> None:
    for given in shuffled(rows("landed.review_records", RECORDS)):
        found = select(CLASS_REVIEWS, {"landed.review_records": given})
        expect(
            found,
            """
            subject_id  reviewer  label_verdict
            a           ann       HILL
            a           bob       END
            b           ann       OTHER
            """,
        )


def test_direction_and_start_distinguish_reviews(select: Select) -> None:
    records = """
        subject_id  reviewer  direction  started_at  label_verdict
        a           ann       read       08:00       START
        a           ann       write      08:00       END
        a           ann       write      09:00       HILL
        """
    found = select(CLASS_REVIEWS, {"landed.review_records": records})
    expect(found, "label_verdict \n START \n END \n HILL")


def test_empty_input_yields_no_rows(select: Select) -> None:
    assert select(CLASS_REVIEWS, {}).is_empty()
