"""Wait reasons: Slurm's own code stays, what follows it does not."""

from __future__ import annotations

import pytest

from iosig.answers.forecast.jobs import _HELD
from iosig.warehouse.sources.jobs.wait_reasons import WAIT_REASONS, extract_code


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("Priority", "Priority"),
        ("ReqNodeNotAvail, UnavailableNodes:cn[01-04]", "ReqNodeNotAvail"),
        ("ReqNodeNotAvail(Unavailable:cn01)", "ReqNodeNotAvail"),
        ("QOSMaxJobsPerUserLimit", "QOSMaxJobsPerUserLimit"),
        ("wanted by ann", None),
        ("ann", None),
        ("PriorityOfAnn", None),
        ("", None),
    ],
)
def test_only_a_code_is_kept(reason: str, expected: str | None) -> None:
    assert extract_code(reason) == expected


def test_the_codes_that_forecasts_know_are_among_them() -> None:
    assert set(_HELD) <= WAIT_REASONS
