"""Test samples.server_io: traffic of the file system while a job ran."""

from __future__ import annotations

from itertools import accumulate

import polars as pl
import pytest
from hypothesis import example, given as examples, settings, strategies as st

from iosig.warehouse.contracts import samples
from iosig.warehouse.contracts.job_io import SERVER_IO
from tests import budget
from tests.naive import server_io as naive
from tests.sql.given import DAY, Select, at, expect, filled, rows

RUNS = "samples.runs"
TICKS = "stage.filesystem_rates"
SAMPLES = "samples.samples"
S = 1_000_000
CONTROLLERS = 4
TEN = int(at("10:00:00").timestamp()) * S


def measured(select: Select, runs: str, ticks: str, direction: str = "read", samples: str = "") -> pl.DataFrame:
    """Return the rows of a direction of `server_io`."""
    found = select(SERVER_IO, {RUNS: runs, TICKS: ticks, SAMPLES: samples})
    assert found.height == 2 * rows(RUNS, runs).height
    return found.filter(pl.col("direction") == direction).sort("job_id", "filesystem")


# ---- polls of a run


def test_poll_belongs_if_it_ends_in_run_or_an_interval_later(select: Select) -> None:
    # Each poll is on a separate file system; the run lasts from 10:00:00 to 10:00:10.
    edges = [
        ("09:59:59.999999", "2", False),
        ("10:00:00", "2", True),
        ("10:00:10", "2", True),
        ("10:00:11.999999", "2", True),
        ("10:00:12", "2", False),
        ("10:00:12", "5", True),
        ("10:00:14.999999", "5", True),
        ("10:00:15", "5", False),
        ("10:00:00", "3600", True),
        ("10:59:00", "3600", True),
        ("10:00:00", "0.000001", True),
        ("10:00:10", "0.000001", True),
        ("10:00:10.000001", "0.000001", False),
    ]
    ticks = "filesystem polled_at interval_s controller_count read_bytes"
    runs = "job_id filesystem started_at ended_at"
    for number, (polled_at, interval_s, _) in enumerate(edges):
        ticks += f"\n fs{number:02d} {polled_at} {interval_s} 1 7"
        runs += f"\n {number:02d} fs{number:02d} 10:00:00 10:00:10"
    expected = "\n".join("measured 7 1" if belongs else "no_polls . 0" for _, _, belongs in edges)
    expect(measured(select, runs, ticks), f"outcome volume_bytes poll_count \n {expected}")


def test_run_of_zero_length_has_its_surrounding_poll(select: Select) -> None:
    ticks = """
        polled_at  controller_count  read_bytes
        09:59:58   1                 1
        10:00:00   1                 10
        10:00:02   1                 100
        10:00:04   1                 1000
        """
    runs = """
        job_id    started_at    ended_at
        between   10:00:01      10:00:01
        on_edge   10:00:00      10:00:00
        """
    expect(measured(select, runs, ticks), "job_id volume_bytes \n between 100 \n on_edge 10")


def test_polls_of_different_lengths_are_combined(select: Select) -> None:
    # Polls every 2 s, then a poll of 10 s over a gap, then polls every 5 s.
    ticks = """
        polled_at  interval_s  controller_count  read_bytes
        09:59:58   2           1                 1
        10:00:00   2           1                 2
        10:00:10   10          1                 100
        10:00:15   5           1                 40
        10:00:20   5           1                 3
        """
    runs = """
        job_id  started_at  ended_at
        a       10:00:00    10:00:11
        b       10:00:05    10:00:06
        c       10:00:10    10:00:15.000001
        """
    expect(
        measured(select, runs, ticks),
        f"""
        job_id  volume_bytes  poll_count  mean_bytes_per_s
        a       142           3           {142 / 17}
        b       100           1           10
        c       143           3           {143 / 20}
        """,
    )


def test_each_direction_has_separate_gaps(select: Select) -> None:
    ticks = """
        polled_at  controller_count  read_bytes  written_bytes
        10:00:00   2                 4           .
        10:00:02   2                 .           .
        10:00:04   1                 8           .
        """
    runs = "started_at ended_at expected_controller_count first_step last_step \n 10:00:00 10:00:03 2 1 3"
    expected = """
        outcome   volume_bytes  mean_bytes_per_s  poll_count  missing_ratio
        measured  12            4                 3           0.5
        """
    expect(measured(select, runs, ticks), expected)
    expect(
        measured(select, runs, ticks, "write"),
        """
        outcome   volume_bytes  mean_bytes_per_s  peak_bytes_per_s  poll_count  missing_ratio
        no_polls  .             .                 .                 0           .
        """,
    )


def test_zero_bytes_are_not_a_gap(select: Select) -> None:
    ticks = "polled_at controller_count read_bytes \n 10:00:00 1 0"
    runs = "started_at ended_at \n 10:00:00 10:00:00"
    expect(
        measured(select, runs, ticks),
        "outcome volume_bytes mean_bytes_per_s peak_bytes_per_s \n measured 0 0 0",
    )


def test_run_without_polls_has_an_outcome_and_no_values(select: Select) -> None:
    ticks = "filesystem polled_at controller_count read_bytes \n a 10:00:00 1 9"
    runs = """
        job_id     filesystem  started_at  ended_at  step_us  expected_controller_count  first_step  last_step
        elsewhere  b           10:00:00    10:00:10  .        .                          .           .
        nowhere    .           10:00:00    10:00:10  .        .                          .           .
        gap        a           11:00:00    11:00:10  2000000  1                          1           5
        """
    expected = """
        job_id     outcome   volume_bytes  mean_bytes_per_s  peak_bytes_per_s  poll_count  missing_ratio
        elsewhere  no_polls  .             .                 .                 0           .
        gap        no_polls  .             .                 .                 0           .
        nowhere    no_polls  .             .                 .                 0           .
        """
    expect(measured(select, runs, ticks), expected)


def test_poll_on_a_day_without_a_grid_is_not_used(select: Select) -> None:
    # A poll of hours that ends on the next day: the run's part of it is unknown.
    ticks = "polled_at interval_s controller_count read_bytes \n 10T03:00:00 14400 1 9"
    runs = "started_at ended_at step_us expected_controller_count \n 23:00:00 23:59:00 . ."
    expect(measured(select, runs, ticks), "outcome volume_bytes missing_ratio poll_count \n no_polls . . 0")


def test_filesystems_are_measured_separately(select: Select) -> None:
    ticks = """
        filesystem  polled_at  controller_count  read_bytes
        a           10:00:00   1                 3
        b           10:00:00   1                 5
        """
    runs = "filesystem started_at ended_at \n a 10:00:00 10:00:00 \n b 10:00:00 10:00:00"
    expect(measured(select, runs, ticks), "filesystem volume_bytes \n a 3 \n b 5")


def test_only_requested_days_are_selected(select: Select) -> None:
    runs = rows(RUNS, "job_id ended_on \n 1 8 \n 2 9 \n 3 . \n 4 10").with_columns(
        ended_at=pl.when(pl.col("ended_on").is_not_null()).then("ended_at")
    )
    found = select(SERVER_IO, {RUNS: runs}, days=[DAY])
    assert found["job_id"].to_list() == ["2", "2"]
    assert found["concurrent_job_count"].to_list() == [3, 3]


# ---- rates


def test_mean_covers_only_polled_time(select: Select) -> None:
    ticks = """
        polled_at  interval_s  controller_count  read_bytes
        10:00:02   2           4                 80
        10:00:04   2           4                 40
        10:00:20   2           4                 60
        """
    runs = "started_at ended_at expected_controller_count \n 10:00:01 10:00:19 4"
    expect(measured(select, runs, ticks), "volume_bytes mean_bytes_per_s \n 180 30")


def test_mean_does_not_depend_on_synchronous_polling(select: Select) -> None:
    together = """
        polled_at    controller_count  read_bytes
        10:00:02     2                 40
        10:00:04     2                 40
        """
    apart = """
        polled_at    controller_count  read_bytes
        10:00:01.5   1                 10
        10:00:02.5   1                 30
        10:00:03.5   1                 10
        10:00:04.5   1                 30
        """
    runs = "started_at ended_at expected_controller_count first_step last_step \n 10:00:01 10:00:03.5 2 1 2"
    for ticks in (together, apart):
        expect(measured(select, runs, ticks), "volume_bytes mean_bytes_per_s missing_ratio \n 80 20 0")


def test_peak_is_maximum_of_sample(select: Select) -> None:
    samples = """
        direction  started_at  filesystem  sample_bytes_per_s
        read       10:00:00    filesystem  1,.,9,4
        write      10:00:00    filesystem  .,2
        """
    ticks = "polled_at controller_count read_bytes written_bytes \n 10:00:02 1 4 4"
    runs = "started_at ended_at \n 10:00:00 10:00:02"
    expect(measured(select, runs, ticks, "read", samples), "peak_bytes_per_s mean_bytes_per_s \n 9 2")
    expect(measured(select, runs, ticks, "write", samples), "peak_bytes_per_s mean_bytes_per_s \n 2 2")


# ---- concurrent runs


def test_concurrent_runs_overlap_on_same_filesystem(select: Select) -> None:
    runs = """
        job_id   filesystem  started_at  ended_at
        long     a           10:00:00    12:00:00
        before   a           09:00:00    10:00:00
        after    a           12:00:00    13:00:00
        within   a           10:30:00    11:00:00
        moment   a           10:45:00    10:45:00
        running  a           11:59:59    .
        other    b           10:00:00    12:00:00
        nowhere  .           10:00:00    12:00:00
        nowhere2 .           11:00:00    13:00:00
        """
    given = rows(RUNS, runs).with_columns(pl.when(pl.col("ended_at").is_not_null()).then("ended_on"))
    found = select(SERVER_IO, {RUNS: given}).filter(pl.col("direction") == "read").sort("job_id")
    expected = """
        job_id    concurrent_job_count
        after     1
        before    0
        long      2
        moment    2
        nowhere   1
        nowhere2  1
        other     0
        within    1
        """
    expect(found, expected)


# ---- comparison with a naive implementation


@st.composite
def polls(draw: st.DrawFn) -> list[naive.Poll]:
    """Draw polls of a file system with different lengths: consecutive, with gaps, or overlapping."""
    lengths = draw(st.lists(st.sampled_from([1, 2 * S, 5 * S, 10 * S]), min_size=1, max_size=20))
    steps = draw(st.lists(st.sampled_from([0, 1, S, 2 * S, 5 * S]), min_size=len(lengths), max_size=len(lengths)))
    values = draw(
        st.lists(
            st.tuples(st.integers(1, CONTROLLERS), st.none() | st.integers(0, 10**14)),
            min_size=len(lengths),
            max_size=len(lengths),
        )
    )
    edges = accumulate(steps, initial=TEN)
    found = {
        (edge, length): naive.Poll(edge, length, controllers, volume)
        for edge, length, (controllers, volume) in zip(edges, lengths, values, strict=False)
    }
    return list(found.values())


def runs_of(times: list[tuple[str | None, int, int | None]]) -> tuple[list[naive.Run], pl.DataFrame]:
    """Return runs of (file system, start [s], duration [s]) for the naive implementation and the model."""
    runs = [
        naive.Run(place, TEN + start * S, None if length is None else TEN + (start + length) * S)
        for place, start, length in times
    ]
    frame = pl.DataFrame(
        {
            "ended_on": pl.Series([None if run.ended_at is None else DAY for run in runs], dtype=pl.Date),
            "job_id": [f"{number:03d}" for number in range(len(runs))],
            "filesystem": pl.Series([run.filesystem for run in runs], dtype=pl.String),
            "started_at": pl.Series([run.started_at for run in runs], dtype=pl.Int64).cast(pl.Datetime("us", "UTC")),
            "ended_at": pl.Series([run.ended_at for run in runs], dtype=pl.Int64).cast(pl.Datetime("us", "UTC")),
        },
    )
    return runs, filled(RUNS, frame.with_columns(pl.lit(CONTROLLERS, pl.Int64).alias("expected_controller_count")))


def ticks_of(found: list[naive.Poll]) -> pl.DataFrame:
    return filled(
        TICKS,
        pl.DataFrame(
            {
                "polled_at": pl.Series([poll.polled_at for poll in found]).cast(pl.Datetime("us", "UTC")),
                "interval_s": [poll.interval / S for poll in found],
                "controller_count": [poll.controllers for poll in found],
                "read_bytes": pl.Series([poll.read_bytes for poll in found], dtype=pl.Int64),
            }
        ),
    )


@settings(max_examples=budget.examples(10), deadline=None)
@examples(polls(), st.lists(st.tuples(st.just("filesystem"), st.integers(-9, 60), st.integers(0, 30)), min_size=5))
def test_volumes_match_naive_implementation(
    select: Select, found: list[naive.Poll], times: list[tuple[str | None, int, int | None]]
) -> None:
    runs, frame = runs_of(times)
    server_io = select(SERVER_IO, {RUNS: frame, TICKS: ticks_of(found)})
    read = server_io.filter(pl.col("direction") == "read").sort("job_id")
    for run, row in zip(runs, read.iter_rows(named=True), strict=True):
        mine = [poll for poll in naive.belonging(found, run) if poll.read_bytes is not None]
        covered_s = sum(poll.interval / S * poll.controllers for poll in mine) / CONTROLLERS
        volume = sum(poll.read_bytes or 0 for poll in mine)
        assert row["outcome"] == ("measured" if mine else "no_polls")
        assert row["poll_count"] == sum(poll.controllers for poll in mine)
        assert row["volume_bytes"] == (volume if mine else None)
        assert row["mean_bytes_per_s"] == (pytest.approx(volume / covered_s) if mine else None)


@settings(max_examples=budget.examples(10), deadline=None)
@examples(
    st.lists(
        st.tuples(st.sampled_from(["a", "b", None]), st.integers(0, 12), st.none() | st.integers(0, 6)),
        min_size=5,
        max_size=40,
    )
)
def test_concurrent_runs_match_naive_implementation(
    select: Select, times: list[tuple[str | None, int, int | None]]
) -> None:
    runs, frame = runs_of(times)
    found = select(SERVER_IO, {RUNS: frame}).filter(pl.col("direction") == "write").sort("job_id")
    ended = [place for place, run in enumerate(runs) if run.ended_at is not None]
    assert found["job_id"].cast(pl.Int64).to_list() == ended
    assert found["concurrent_job_count"].to_list() == [naive.concurrent_count(runs, place) for place in ended]


# ---- consistency with samples


def sampled(runs: pl.DataFrame, steps: pl.DataFrame) -> pl.DataFrame:
    """Return the runs' samples in both directions."""
    rates = {name: dict(zip(steps["step"], steps[f"{name}_bytes_per_s"], strict=True)) for name in ("read", "write")}
    found = [
        run | {"direction": name, "sample_bytes_per_s": [of_step[step] for step in range(first, last + 1)]}
        for run in runs.select("job_id", "started_at", "first_step", "last_step").to_dicts()
        for first, last in [(run.pop("first_step"), run.pop("last_step"))]
        for name, of_step in rates.items()
    ]
    return filled(SAMPLES, pl.DataFrame(found, schema_overrides={"sample_bytes_per_s": pl.List(pl.Float64)}))


@settings(max_examples=budget.examples(10), deadline=None)
@examples(
    polls(),
    st.lists(st.tuples(st.just("filesystem"), st.integers(-9, 60), st.integers(0, 12)), min_size=5, max_size=12),
    st.sampled_from([0, 1, 700_000, 1_999_999]),
)
@example([naive.Poll(TEN, 1, 1, 0), naive.Poll(TEN + 1, 1, 1, 1)], [("filesystem", 0, 0)] * 5, 1)
def test_volume_mean_and_peak_are_consistent(
    select: Select, found: list[naive.Poll], times: list[tuple[str | None, int, int | None]], phase_us: int
) -> None:
    ticks = ticks_of(found)
    jobs = runs_of(times)[1].select("job_id", "ended_on", "started_at", "ended_at", "filesystem")
    day = f"controller_count grid_phase_s \n {CONTROLLERS} {phase_us / S}"
    runs = select(samples.RUNS, {"stage.jobs": filled("stage.jobs", jobs), "stage.polls_daily": day})
    steps = select(samples.GRID_STEPS, {RUNS: runs, TICKS: ticks})
    server_io = select(SERVER_IO, {RUNS: runs, TICKS: ticks, SAMPLES: sampled(runs, steps)})
    measured = server_io.filter(pl.col("outcome") == "measured")
    figures = measured.select("volume_bytes", "mean_bytes_per_s", "peak_bytes_per_s")
    assert figures.null_count().row(0) == (0, 0, 0)
    for volume, mean, peak in figures.iter_rows():
        assert (volume > 0) == (mean > 0) == (peak > 0)
        assert mean <= peak
    unmeasured = server_io.filter(pl.col("outcome") == "no_polls").select(figures.columns)
    assert unmeasured.null_count().row(0) == (unmeasured.height,) * 3
