"""Test samples.grid_steps: a file system's traffic on a regular grid, with all bytes conserved."""

from __future__ import annotations

import time
from itertools import accumulate

import polars as pl
import pytest
from hypothesis import given as examples, settings, strategies as st

from iosig.warehouse.contracts.samples import GRID_STEPS
from tests import budget
from tests.naive import grid_steps as naive
from tests.sql.given import DAY, Select, at, expect, filled

RUNS = "samples.runs"
TICKS = "stage.filesystem_rates"
S = 1_000_000
#: number of the step of 2 s that ends at 10:00:00
TEN = int(at("10:00:00").timestamp()) // 2


def runs(first: int, last: int, step_us: int = 2 * S, phase_us: int = 0, controllers: int = 1) -> str:
    """Return a run that needs these steps, inclusive."""
    return f"""
        first_step  last_step  step_us    phase_us    expected_controller_count
        {first}     {last}     {step_us}  {phase_us}  {controllers}
        """


def test_polls_on_the_grid_are_its_steps_and_gaps_are_null(select: Select) -> None:
    ticks = """
        polled_at   controller_count  read_bytes  written_bytes
        09:59:58    4                 1000        1000
        10:00:00    4                 10          20
        10:00:02    3                 5           .
        10:00:06    4                 0           7
        10:00:08    4                 1000        1000
        """
    found = select(GRID_STEPS, {RUNS: runs(TEN, TEN + 3, controllers=4), TICKS: ticks})
    expect(
        found,
        f"""
        step       read_bytes_per_s  write_bytes_per_s  reported_ratio
        {TEN}      5                 10                 1
        {TEN + 1}  2.5               .                  0.75
        {TEN + 2}  .                 .                  0
        {TEN + 3}  0                 3.5                1
        """,
    )


def test_poll_over_a_gap_is_distributed_by_time(select: Select) -> None:
    ticks = """
        polled_at  interval_s  controller_count  read_bytes
        10:00:00   2           1                 8
        10:00:10   10          1                 100
        10:00:12   2           1                 6
        """
    found = select(GRID_STEPS, {RUNS: runs(TEN, TEN + 6), TICKS: ticks})
    assert found["read_bytes_per_s"].to_list() == [4, 10, 10, 10, 10, 10, 3]
    assert found["reported_ratio"].to_list() == [1] * 7


def test_polls_off_the_grid_are_split_at_its_edges(select: Select) -> None:
    ticks = """
        polled_at      interval_s  controller_count  read_bytes
        10:00:00.5     2           1                 100
        10:00:02.5     2           1                 200
        """
    found = select(GRID_STEPS, {RUNS: runs(TEN, TEN + 2), TICKS: ticks})
    assert found["read_bytes_per_s"].to_list() == [37.5, 87.5, 25]
    assert found["reported_ratio"].to_list() == [0.75, 1, 0.25]


def test_controllers_polled_at_different_instants_are_summed(select: Select) -> None:
    ticks = """
        polled_at   interval_s  controller_count  read_bytes
        10:00:02    2           1                 10
        10:00:03    2           1                 10
        10:00:04    2           1                 10
        10:00:05    2           1                 10
        """
    found = select(GRID_STEPS, {RUNS: runs(TEN + 2, TEN + 2, controllers=2), TICKS: ticks})
    expect(found, "read_bytes_per_s reported_ratio \n 10 1")


def test_reported_ratio_of_overlapping_polls_is_at_most_1(select: Select) -> None:
    ticks = """
        polled_at  interval_s  controller_count  read_bytes
        10:00:00   2           1                 10
        10:00:01   3           1                 30
        """
    found = select(GRID_STEPS, {RUNS: runs(TEN, TEN), TICKS: ticks})
    expect(found, "read_bytes_per_s reported_ratio \n 15 1")


def test_each_grid_of_filesystem_has_separate_steps(select: Select) -> None:
    # Runs with the same grid share its steps, from the first to the last needed step.
    grids = f"""
        filesystem  job_id  first_step   last_step    step_us   phase_us  expected_controller_count
        a           1       {TEN}        {TEN + 1}    2000000   0         1
        a           2       {TEN + 1}    {TEN + 2}    2000000   0         2
        a           3       {TEN}        {TEN}        2000000   1000000   1
        b           4       {TEN // 2}   {TEN // 2}   4000000   0         1
        c           5       .            .            .         .         .
        """
    ticks = "filesystem polled_at controller_count read_bytes \n a 10:00:02 1 8 \n b 10:00:00 1 40"
    found = select(GRID_STEPS, {RUNS: grids, TICKS: ticks})
    expect(
        found,
        f"""
        filesystem  step_us  phase_us  step        read_bytes_per_s  reported_ratio
        a           2000000  0         {TEN}       .                 0
        a           2000000  0         {TEN + 1}   4                 0.5
        a           2000000  0         {TEN + 2}   .                 0
        a           2000000  1000000   {TEN}       2                 0.5
        b           4000000  0         {TEN // 2}  10                0.5
        """,
    )


def test_only_runs_of_requested_days_need_steps(select: Select) -> None:
    of_days = f"""
        job_id  ended_on  step_us  phase_us  expected_controller_count  first_step  last_step
        1       9         2000000  0         1                          {TEN}       {TEN}
        2       10        2000000  0         1                          5           9
        3       .         2000000  0         1                          5           9
        """
    assert select(GRID_STEPS, {RUNS: of_days}, days=[DAY])["step"].to_list() == [TEN]
    assert select(GRID_STEPS, {RUNS: of_days}, days=[]).is_empty()


def test_poll_of_years_costs_only_the_requested_steps(select: Select) -> None:
    ticks = "polled_at interval_s controller_count read_bytes \n 11:00:00 1e8 1 100000000"
    began = time.process_time()
    found = select(GRID_STEPS, {RUNS: runs(TEN, TEN + 9), TICKS: ticks})
    assert time.process_time() - began < 1
    assert found["read_bytes_per_s"].to_list() == [1] * 10


@st.composite
def polled(draw: st.DrawFn) -> list[naive.Poll]:
    """Draw consecutive polls with gaps, of any length and phase."""
    lengths = draw(st.lists(st.integers(1, 12 * S), min_size=1, max_size=25))
    holes = draw(st.lists(st.integers(0, 4 * S), min_size=len(lengths), max_size=len(lengths)))
    volumes = draw(st.lists(st.none() | st.integers(0, 10**13), min_size=len(lengths), max_size=len(lengths)))
    start = TEN * 2 * S
    edges = accumulate((length + hole for length, hole in zip(lengths, holes, strict=True)), initial=start)
    return [(edge, length, volume) for edge, length, volume in zip(list(edges)[1:], lengths, volumes, strict=True)]


def ticks_of(polls: list[naive.Poll], controllers: int) -> pl.DataFrame:
    return filled(
        TICKS,
        pl.DataFrame(
            {
                "polled_at": pl.Series([right for right, _, _ in polls], dtype=pl.Int64).cast(pl.Datetime("us", "UTC")),
                "interval_s": [length / S for _, length, _ in polls],
                "controller_count": [controllers] * len(polls),
                "read_bytes": pl.Series([volume for _, _, volume in polls], dtype=pl.Int64),
            }
        ),
    )


@settings(max_examples=budget.examples(12), deadline=None)
@examples(polled(), st.sampled_from([S // 2, 2 * S, 5 * S]), st.integers(0, 5 * S), st.integers(1, 3))
def test_bytes_are_conserved_across_steps(
    select: Select, polls: list[naive.Poll], step_us: int, phase_us: int, controllers: int
) -> None:
    phase_us %= step_us
    first = (polls[0][0] - polls[0][1] - phase_us) // step_us
    last = (polls[-1][0] - phase_us) // step_us + 1
    found = select(
        GRID_STEPS,
        {RUNS: runs(first, last, step_us, phase_us, controllers=3), TICKS: ticks_of(polls, controllers)},
    )
    assert found["step"].to_list() == list(range(first, last + 1))
    moved = [None if rate is None else rate * (step_us / S) for rate in found["read_bytes_per_s"]]
    assert round(sum(volume or 0 for volume in moved)) == sum(volume or 0 for _, _, volume in polls)
    for step, volume, ratio in zip(found["step"], moved, found["reported_ratio"], strict=True):
        expected = naive.step_bytes(polls, step_us, phase_us, step)
        touching = sum(edge > (step - 1) * step_us for edge, _, _ in polls)
        assert (volume is None) == (expected is None)
        assert volume is None or volume == pytest.approx(expected, rel=1e-9, abs=touching + 1)
        assert ratio == pytest.approx(naive.reported_ratio(polls, controllers, 3, step_us, phase_us, step), abs=1e-9)


def test_operations_are_distributed_like_bytes(select: Select) -> None:
    polls = """
        polled_at  interval_s  controller_count  read_bytes  read_count  write_count
        10:00:04   4           1                 8           6           .
        """
    found = select(GRID_STEPS, {RUNS: runs(TEN + 1, TEN + 3), TICKS: polls})
    expect(found, "read_operations_per_s write_operations_per_s \n 1.5 . \n 1.5 . \n . .")
