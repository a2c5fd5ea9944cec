"""Job keys: which id of the scheduler's stands in what servers call a job."""

from __future__ import annotations

import re

import polars as pl
import pytest

from iosig.settings.model import CounterSettings
from iosig.transforms.job_keys import expression, read_keys

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


def test_keys_are_read_by_the_first_pattern_that_fits() -> None:
    found = read_keys(pl.Series(list(KEYS)), CounterSettings().job_keys)
    assert {key: (kind, number) for key, kind, number in found.rows()} == KEYS


def test_a_site_s_own_pattern_counts() -> None:
    found = read_keys(pl.Series(["ior-77@n1", "77"]), [r"^\w+-(\d+)@"])
    assert found["scheduler_id"].to_list() == ["77", None]


@pytest.mark.parametrize("told", ["no group", "(a)(b)", "(", "%j and %j"])
def test_what_has_not_one_id_is_refused(told: str) -> None:
    with pytest.raises(re.error):
        expression(told)
    with pytest.raises(ValueError, match="jobid_name"):
        CounterSettings(job_keys=[told])
