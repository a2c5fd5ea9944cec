"""Test texts of figures and tables: shortened names."""

from __future__ import annotations

import pytest

from iosig.reports.texts import shorten_id


@pytest.mark.parametrize(
    ("application_id", "shown"),
    [
        ("ivy@titan/s3d/8", "ivy@titan/s3d/8"),
        ("ivy@titan/enzo/2048", "ivy/enzo/2048"),
        ("fay@titan/gromacs/1024", "fay/gro…cs/1024"),
        ("unattributed", "unattributed"),
    ],
)
def test_long_ids_are_shortened_by_the_machine_first(application_id: str, shown: str) -> None:
    assert shorten_id(application_id, 15) == shown
