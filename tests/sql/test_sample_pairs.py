"""Test the joins of samples: positions of runs in the grid's steps, and pairs of cut and exact samples."""

from __future__ import annotations

from iosig.warehouse.contracts.samples import SAMPLE_PAIRS, SAMPLE_PLACES
from tests.sql.given import Select, at, expect

RUNS, GRID_STEPS = "samples.runs", "samples.grid_steps"
EXACT, SAMPLES = "samples.exact_samples", "samples.samples"
S = 1_000_000
#: number of the step of 2 s that ends at 10:00:00
TEN = int(at("10:00:00").timestamp()) // 2


def test_run_has_position_of_its_first_step_in_both_directions(select: Select) -> None:
    runs = f"""
        job_id  filesystem  step_us  phase_us  first_step  last_step
        1       lake        {2 * S}  0         {TEN}       {TEN + 1}
        2       lake        {2 * S}  0         {TEN + 1}   {TEN + 2}
        3       lake        {2 * S}  {S}       {TEN}       {TEN}
        4       pond        {2 * S}  0         {TEN}       {TEN}
        5       lake        .        .         .           .
    """
    steps = f"""
        filesystem  step_us  phase_us  step
        lake        {2 * S}  0         {TEN}
        lake        {2 * S}  0         {TEN + 1}
        lake        {2 * S}  0         {TEN + 2}
        lake        {2 * S}  {S}       {TEN}
        pond        {2 * S}  0         {TEN}
    """
    expected = """
        job_id  filesystem  direction  grid_started_at  interval_s  step_count  first_place
        1       lake        read       09:59:58         2           2           0
        1       lake        write      09:59:58         2           2           0
        2       lake        read       10:00:00         2           2           1
        2       lake        write      10:00:00         2           2           1
        3       lake        read       09:59:59         2           1           3
        3       lake        write      09:59:59         2           1           3
        4       pond        read       09:59:58         2           1           4
        4       pond        write      09:59:58         2           1           4
        """
    expect(select(SAMPLE_PLACES, {RUNS: runs, GRID_STEPS: steps}), expected)


def test_pairs_compare_bytes_of_both_samples(select: Select) -> None:
    exact = """
        job_id  filesystem  direction  interval_s  sample_bytes_per_s
        1       lake        read       2           1,2,.
        2       lake        read       2           0,0
        3       lake        read       2           1
    """
    cut = """
        job_id  filesystem  direction  interval_s  sample_bytes_per_s
        1       lake        read       4           3,.
        1       lake        write      4           3
        2       lake        read       4           1
    """
    expected = """
        job_id  exact_bytes  cut_bytes  overestimation_factor  sample_bytes_per_s  cut_bytes_per_s  cut_interval_s
        1       6            12         2            1,2,.               3,.              4
        2       0            4          .            0,0                 1                4
        """
    expect(select(SAMPLE_PAIRS, {EXACT: exact, SAMPLES: cut}), expected)
