"""The joint-signature step: when it is due, and which answer becomes the default."""

from __future__ import annotations

from datetime import UTC, date, datetime

import polars as pl
import pytest

from iosig.estimates.signatures.published import SUBJECT
from iosig.flows.steps.joint import is_due, with_defaults

NOON = datetime(2026, 3, 3, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("last", "now", "interval_days", "expected"),
    [
        (date(2026, 3, 8), date(2026, 3, 9), 7, True),  # a Monday
        (date(2026, 3, 2), date(2026, 3, 8), 7, False),
        (date(2026, 3, 2), date(2026, 3, 30), 7, True),
        (date(2026, 3, 2), date(2026, 3, 3), 1, True),
        (date(2026, 3, 3), date(2026, 3, 3), 1, False),
        (date(2026, 3, 8), date(2026, 3, 9), 0, False),
        (None, date(2026, 3, 9), 7, False),
        (date(2026, 3, 9), None, 7, False),
        (date(2026, 3, 9), date(2026, 3, 2), 7, False),
    ],
)
def test_joint_step_is_due_once_per_interval(
    last: date | None, now: date | None, interval_days: int, expected: bool
) -> None:
    assert is_due(last, now, interval_days) is expected


def rows_of(*rows: tuple[str, str, bool, float | None], metric: str = "bytes") -> pl.DataFrame:
    """Return signatures: application, method, whether it is the default, and expected correlation."""
    schema = {
        "application_id": pl.String,
        "method": pl.String,
        "is_default": pl.Boolean,
        "expected_correlation": pl.Float64,
    }
    told = pl.DataFrame(rows, schema=schema, orient="row")
    return told.with_columns(filesystem=pl.lit("fs"), direction=pl.lit("write"), metric=pl.lit(metric))


def test_joint_answer_is_default_with_fallback_to_the_best_other_method() -> None:
    found = with_defaults(
        rows_of(
            ("a", "elastic", True, 0.9), ("a", "joint", False, 0.5), ("b", "elastic", False, 0.8),
            ("b", "iosi", False, 0.9), ("c", "iosi", True, 0.4), ("c", "elastic", False, None),
        )
    )  # fmt: skip
    assert found.filter("is_default").select("application_id", "method").rows() == [
        ("a", "joint"), ("b", "elastic"), ("c", "iosi"),
    ]  # fmt: skip
    assert found.group_by(SUBJECT).agg(pl.col("is_default").sum())["is_default"].to_list() == [1, 1, 1]


def test_defaults_are_unchanged_without_joint_answers() -> None:
    rows = rows_of(("a", "elastic", True, None), ("a", "iosi", False, 0.9))
    assert with_defaults(rows).equals(rows)


def test_default_is_of_bytes() -> None:
    of_bytes = rows_of(("a", "elastic", True, 0.9))
    of_operations = rows_of(("a", "iosi", True, 0.95), ("b", "elastic", False, 0.9), metric="operations")
    found = with_defaults(pl.concat([of_bytes, of_operations]))
    assert found["is_default"].to_list() == [True, False, False]
