"""What there is to see of a signature, beside what the release says of it."""

from __future__ import annotations

import pytest

from flows.signatures.view import Asked, view_of
from tests.flows.conftest import Night
from warehouse.releases.reading import opened


@pytest.mark.slow
def test_as_many_bursts_are_red_as_the_release_says_are_lacked(checked_night: Night) -> None:
    store, release = checked_night.store, checked_night.release
    with opened(store, release, "signatures") as connection:
        rows = connection.sql("""
            select application_id, filesystem, direction, method, lacked_burst_count
            from signatures
            where outcome in ('extracted', 'no_common_bursts')
        """).fetchall()
    assert rows
    for *asked, count in rows:
        assert len(view_of(store, release, Asked(*asked)).missed) == count, asked
