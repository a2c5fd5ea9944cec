"""Slowed bursts as text."""

from __future__ import annotations

import pytest

from iosig.reports.slowdowns import NOBODY_KNOWN, format_slowed_bursts, top_interferer


@pytest.mark.parametrize(
    ("outcomes", "said"),
    [
        ([], "No bursts of this run were detected"),
        (["not_found", "not_found"], "No bursts of this run were detected"),
        (["slowed", "not_found"], "1 of 1 burst detected in the traffic was slowed."),
        (["slowed", "not_slowed", "slowed"], "2 of 3 bursts detected in the traffic were slowed."),
        (["not_slowed", "not_slowed"], "0 of 2 bursts detected in the traffic were slowed."),
    ],
)
def test_slowed_bursts_are_counted_among_found_bursts(outcomes: list[str], said: str) -> None:
    assert format_slowed_bursts(outcomes).startswith(said)


@pytest.mark.parametrize(
    ("first", "top_interferer_bytes", "unattributed_bytes", "expected"),
    [
        ("ann/ior/8", 5.0, 5.0, ("ann/ior/8", 5.0)),
        ("ann/ior/8", 5.0, 6.0, (NOBODY_KNOWN, 6.0)),
        (None, None, 6.0, (NOBODY_KNOWN, 6.0)),
        (None, None, None, (NOBODY_KNOWN, 0.0)),
    ],
)
def test_top_interferer_is_named_unless_unattributed_bytes_are_more(
    first: str | None, top_interferer_bytes: float | None, unattributed_bytes: float | None, expected: tuple[str, float]
) -> None:
    row = {
        "top_interferer_application_id": first,
        "top_interferer_bytes": top_interferer_bytes,
        "unattributed_bytes": unattributed_bytes,
    }
    assert top_interferer(row) == expected
