"""Rises of a node's counters belong to the job that the earlier reading named, whatever block they arrive in."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given, settings, strategies as st

from iosig.warehouse.sources.counters.job_shares import NO_JOB, JobShares
from tests.budget import examples

SCHEMA = {"target": pl.String, "job_key": pl.String, "total_read_bytes": pl.Int64}
Reading = tuple[str, str, int | None]


def take(*blocks: list[Reading]) -> list[tuple[str, int | None]]:
    """Return the job and its share of each reading, block by block."""
    shares = JobShares()
    frames = [shares.take(pl.DataFrame(block, SCHEMA, orient="row")) for block in blocks]
    return pl.concat(frames).select("job_key", "total_read_bytes").rows()


def test_share_is_the_rise_since_the_first_reading_of_the_job() -> None:
    readings: list[Reading] = [("n1", "7", 100), ("n1", "7", 130), ("n1", "7", 190)]
    assert take(readings) == [("7", 0), ("7", 30), ("7", 90)]


def test_rise_from_one_job_to_the_next_belongs_to_neither() -> None:
    readings: list[Reading] = [("n1", "7", 100), ("n1", "8", 150), ("n1", "8", 160)]
    assert take(readings) == [("7", 0), ("8", 0), ("8", 10)]


@pytest.mark.parametrize("idle", NO_JOB)
def test_rise_from_an_idle_node_belongs_to_the_next_job(idle: str) -> None:
    readings: list[Reading] = [("n1", idle, 100), ("n1", "8", 150)]
    assert take(readings)[1] == ("8", 50)


def test_value_after_a_restart_is_the_rise() -> None:
    readings: list[Reading] = [("n1", "7", 100), ("n1", "7", 40)]
    assert take(readings)[1] == ("7", 40)


def test_missing_counter_has_no_share() -> None:
    readings: list[Reading] = [("n1", "7", None), ("n1", "7", None)]
    assert take(readings) == [("7", None), ("7", None)]


@settings(max_examples=examples(50), deadline=None)
@given(
    readings=st.lists(
        st.tuples(st.sampled_from(["n1", "n2"]), st.sampled_from(["7", "8", "0"]), st.integers(0, 1000)), min_size=1
    ),
    cut=st.integers(0, 100),
)
def test_blocks_give_the_shares_of_one_block(readings: list[Reading], cut: int) -> None:
    first, second = readings[:cut], readings[cut:]
    assert take(*(block for block in (first, second) if block)) == take(readings)
