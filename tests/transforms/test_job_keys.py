"""Job keys: kinds and job ids by pattern, and invalid patterns."""

from __future__ import annotations

import re

import polars as pl
import pytest

from iosig.settings.model import CounterSettings
from iosig.transforms.job_keys import parse_keys, to_regex

KEYS = {
    "43": ("job", "43"),
    "43_7": ("job", "43_7"),
    "": ("blank", None),
    " ": ("blank", None),
    "SLURM_JOB10:0:es18kxe-co-client": ("job", "10"),
    "cp.0": ("process", None),
    "12.0": ("process", None),
    "123.pbs01": ("job", "123"),
    "123[4].pbs01": ("job", "123[4]"),
    "what?": ("unknown", None),
}


def test_first_matching_pattern_determines_kind_and_id() -> None:
    result = parse_keys(pl.Series(list(KEYS)), CounterSettings().job_keys)
    assert {key: (kind, number) for key, kind, number in result.rows()} == KEYS


def test_custom_regular_expression_extracts_the_id() -> None:
    result = parse_keys(pl.Series(["ior-77@n1", "77"]), [r"^\w+-(\d+)@"])
    assert result["scheduler_id"].to_list() == ["77", None]


@pytest.mark.parametrize("pattern", ["no group", "(a)(b)", "(", "%j and %j"])
def test_pattern_without_exactly_one_id_raises(pattern: str) -> None:
    with pytest.raises(re.error):
        to_regex(pattern)
    with pytest.raises(ValueError, match="jobid_name"):
        CounterSettings(job_keys=[pattern])
