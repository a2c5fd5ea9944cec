"""Test wait reasons: Slurm's code is kept, the text after it is dropped."""

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
def test_only_known_code_is_extracted(reason: str, expected: str | None) -> None:
    assert extract_code(reason) == expected


def test_wait_reasons_include_codes_used_by_forecasts() -> None:
    assert set(_HELD) <= WAIT_REASONS
