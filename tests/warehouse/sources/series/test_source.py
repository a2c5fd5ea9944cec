from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from iosig.warehouse.contracts.series import SERIES
from iosig.warehouse.errors import InputRefused, UsageError
from iosig.warehouse.sources.files.opening import read_head
from iosig.warehouse.sources.protocol import Head, Reading, recognize
from iosig.warehouse.sources.series.source import SOURCE, find_direction, sniff, subject
from tests.budget import examples
from tests.naive.sources.rows import counters as naive
from tests.warehouse.sources.batch_reading import read_input

DAY_S = 86_400.0


def write(folder: Path, text: str, name: str = "job-17-reads.csv") -> Path:
    path = folder / name
    path.write_bytes(text.encode())
    return path


def read_series(path: Path, reading: Reading | None = None) -> tuple[pl.DataFrame, ...]:
    return read_input(SOURCE, path, reading, SERIES)


def cells(rows: pl.DataFrame) -> list[tuple[object, ...]]:
    return rows.select("direction", "time_s", "interval_s", "bytes_per_s", "flag").rows()


@pytest.mark.parametrize("mark", [" ", "\t", "  ", ",", ", ", ";"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_two_bare_columns_are_time_and_cumulative_bytes(tmp_path: Path, mark: str, end: str) -> None:
    lines = [("0.5", "1000"), ("30.5", "1600"), ("90.5", "1600")]
    path = write(tmp_path, end.join(mark.join(line) for line in lines) + end)
    assert recognize(read_head(path)) is SOURCE
    rows, refused = read_series(path)
    assert refused.is_empty()
    assert cells(rows) == [("read", 30.5, 30.0, 20.0, None), ("read", 90.5, 60.0, 0.0, None)]
    assert rows["subject_id"].unique().to_list() == ["job-17-reads"]
    assert rows["node_count"].null_count() == 2


def test_bare_columns_may_be_rates_or_volumes(tmp_path: Path) -> None:
    rates = [("read", 0.0, 5.0, 10.0, None), ("read", 5.0, 5.0, 20.0, None)]
    rows, refused = read_series(write(tmp_path, "0,10\n5,20\n10,\n25,30\n"), Reading(value="rate"))
    assert refused.is_empty()
    assert cells(rows) == [*rates, ("read", 10.0, 5.0, None, "missing"), ("read", 25.0, 15.0, 30.0, None)]
    path = write(tmp_path, "0 10\n5 20\n10 \n25 30\n")
    rows, refused = read_series(path, Reading(value="volume", direction="write"))
    assert refused["line"].to_list() == [3]
    assert cells(rows) == [
        ("write", 0.0, 5.0, 2.0, None),
        ("write", 5.0, 5.0, 4.0, None),
        ("write", 25.0, 20.0, 1.5, None),
    ]


def test_header_names_rates_and_counters_of_both_directions(tmp_path: Path) -> None:
    text = "line,read_bytes_per_s,time_s,write_bytes,note\nx,1,10,100,y\nx,,20,130,y\nx,3,30,,y\nx,4,40,190,y\n"
    rows, refused = read_series(write(tmp_path, text))
    assert refused.is_empty()
    assert cells(rows) == [
        ("read", 10.0, 10.0, 1.0, None),
        ("read", 20.0, 10.0, None, "missing"),
        ("read", 30.0, 10.0, 3.0, None),
        ("read", 40.0, 10.0, 4.0, None),
        ("write", 20.0, 10.0, 3.0, None),
        ("write", 40.0, 20.0, 3.0, None),
    ]


def test_header_may_be_mapped_and_bytes_may_be_volumes(tmp_path: Path) -> None:
    path = write(tmp_path, "t v\n10 100\n20 50\n")
    rows, _ = read_series(path, Reading(value="volume", columns={"time_s": "t", "write_bytes": "v"}))
    assert cells(rows) == [("write", 10.0, 10.0, 10.0, None), ("write", 20.0, 10.0, 5.0, None)]


@pytest.mark.parametrize(
    ("first", "second", "zone"),
    [
        ("1970-01-02", "1970-01-03", "UTC"),
        ("1970-01-02T00:00:00Z", "1970-01-03T01:00:00+01:00", None),
        ("1970-01-02T01:00:00", "1970-01-03T01:00:00", "Europe/Berlin"),
        ("1970-01-02 00:00:00", "1970-01-03 00:00:00", "UTC"),
    ],
)
def test_iso_times_become_seconds_since_1970(tmp_path: Path, first: str, second: str, zone: str | None) -> None:
    rows, _ = read_series(write(tmp_path, f"{first},5\n{second},5\n"), Reading(time_zone=zone, value="rate"))
    assert cells(rows) == [("read", DAY_S, DAY_S, 5.0, None), ("read", 2 * DAY_S, DAY_S, 5.0, None)]


@pytest.mark.parametrize("first", ["1970-01-02", "1970-01-02T01:00:00"])
def test_iso_times_without_time_zone_are_refused(tmp_path: Path, first: str) -> None:
    path = write(tmp_path, f"{first},5\n1970-01-03,5\n")
    with pytest.raises(InputRefused, match="has no time zone") as error:
        read_series(path, Reading(value="rate"))
    assert "--time-zone Europe/Berlin" in error.value.remedy


def test_bad_rows_are_refused_and_next_interval_spans_them(tmp_path: Path) -> None:
    text = "0 100\n10 x\n20 -5\n20 300\n15 200\n20 300\nnan 5\nsoon 5\n30\n40 500\n50 inf\n"
    rows, refused = read_series(write(tmp_path, text))
    assert cells(rows) == [("read", 40.0, 40.0, 10.0, None)]
    assert refused["line"].to_list() == [2, 3, 4, 5, 6, 7, 8, 9, 11]
    assert refused["raw"].to_list()[0] == "10 x"
    assert refused["reason"].to_list()[3] == "The time is not later than all earlier times."


def test_refused_rate_does_not_lengthen_next_interval(tmp_path: Path) -> None:
    rows, refused = read_series(write(tmp_path, "0 1\n10 -1\n20 x\n30 4\n"), Reading(value="rate"))
    assert cells(rows) == [("read", 0.0, 10.0, 1.0, None), ("read", 30.0, 10.0, 4.0, None)]
    assert refused["line"].to_list() == [2, 3]


def test_single_rate_has_no_interval(tmp_path: Path) -> None:
    rows, refused = read_series(write(tmp_path, "0 1\n"), Reading(value="rate"))
    assert rows.is_empty()
    assert refused["reason"].to_list() == ["The interval_s is missing."]


def test_counters_beyond_float_precision_are_exact(tmp_path: Path) -> None:
    rows, _ = read_series(write(tmp_path, f"0 {2**60}\n1 {2**60 + 1}\n2 {2**60 + 3}\n"))
    assert rows["bytes_per_s"].to_list() == [1.0, 2.0]


def test_reset_is_a_gap_and_retraction_counts_once(tmp_path: Path) -> None:
    rows, _ = read_series(write(tmp_path, "0 100\n1 150\n2 120\n3 5\n4 9\n"))
    assert [row[3:] for row in cells(rows)] == [(20.0, "retracted"), (0.0, "retracted"), (None, "reset"), (4.0, None)]


def test_unknown_value_or_direction_raises_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="speed"):
        read_series(write(tmp_path, "1 2\n"), Reading(value="speed"))
    with pytest.raises(UsageError, match="sideways"):
        read_series(write(tmp_path, "1 2\n"), Reading(direction="sideways"))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("job-17.csv", "job-17"),
        ("job-17.txt.gz", "job-17"),
        ("node.0.5.csv", "node.0.5"),
        ("node.0.5", "node.0.5"),
        ("a.gz", "a"),
        ("TRACE.CSV.ZST", "TRACE"),
        (".csv", ".csv"),
    ],
)
def test_subject_is_file_name_without_suffixes(name: str, expected: str) -> None:
    assert subject(name) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("ub-hpc-reads-6299171.csv", "read"),
        ("job_write.txt", "write"),
        ("GPFS-Writes2.csv", "write"),
        ("threads-1.csv", "unstated"),
        ("reads-and-writes.csv", "unstated"),
        ("trends_python.csv", "unstated"),
    ],
)
def test_direction_is_a_word_of_file_name(name: str, expected: str) -> None:
    assert find_direction(name) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0.1 5\n30.1 7\n", True),
        ("2012-06-24,1\n2012-07-01,1\n", True),
        ("1e9,5.5\r\n1000000030,6\r\n", True),
        ("time,write_bytes\n", True),
        ("time_s read_bytes_per_s\n1 2\n", True),
        ("0.1 5\n", False),
        ("0.1 5 6\n1 2 3\n", False),
        ("0.1 5\nx y\n", False),
        ("file\tunit\n1\t2\n", False),
        ("polled_at,controller,read_bytes_per_s,write_bytes_per_s\n1,2,3,4\n", False),
        ("", False),
    ],
)
def test_only_series_are_recognized(text: str, expected: bool) -> None:
    assert sniff(Head("x", text.encode())) is expected


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(0, 20)), min_size=2, max_size=30))
@settings(max_examples=examples(50), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_volumes_match_naive_confirmed_increases(tmp_path: Path, readings: list[tuple[int, int]]) -> None:
    times = np.cumsum([gap for gap, _ in readings])
    values = [value for _, value in readings]
    path = write(tmp_path, "".join(f"{time} {value}\n" for time, value in zip(times, values, strict=True)))
    rows, refused = read_series(path)
    assert refused.is_empty()
    volumes = (rows["bytes_per_s"] * rows["interval_s"]).to_list()
    for volume, flag, (rise, word) in zip(volumes, rows["flag"], naive.confirmed(values)[1:], strict=True):
        assert flag == word
        assert volume is None if word == "reset" else volume == pytest.approx(rise)


def quarters(rows: pl.DataFrame) -> list[float]:
    """Return the bytes in four equal parts of the series; an interval's bytes are split in proportion to time."""
    ends, widths = rows["time_s"].to_numpy(), rows["interval_s"].to_numpy()
    total = np.concatenate([[0.0], np.cumsum(rows["bytes_per_s"].to_numpy() * widths)])
    edges = np.linspace(ends[0] - widths[0], ends[-1], 5)
    return list(np.diff(np.interp(edges, np.concatenate([[ends[0] - widths[0]], ends]), total)))


def test_real_series_have_bytes_gained_by_their_counters(shared_data: Path) -> None:
    folder = shared_data / "ccr-gpfs"
    golden = pl.read_csv(folder / "golden.tsv", separator="\t")
    assert not sniff(read_head(folder / "golden.tsv"))
    paths = sorted(folder.glob("*.csv"))
    assert len(paths) == 10
    for path in paths:
        assert recognize(read_head(path)) is SOURCE
        value = "rate" if path.name.startswith("trends") else None
        rows, refused = read_series(path, Reading(time_zone="UTC", value=value))
        assert refused.is_empty()
        lines = path.read_bytes().count(b"\n") + (not path.read_bytes().endswith(b"\n"))
        assert rows.height == lines - (value is None)
        known = golden.filter(file=path.name)
        if value is None and known.height:
            moved = (rows["bytes_per_s"] * rows["interval_s"]).sum()
            assert moved == pytest.approx(known["total"][0], rel=1e-12)


def test_real_counter_with_29_decreases_has_confirmed_bytes(shared_data: Path) -> None:
    rows, _ = read_series(shared_data / "ccr-gpfs" / "ub-hpc-writes-6519766.csv")
    assert rows["direction"].unique().to_list() == ["write"]
    assert rows["bytes_per_s"].min() == 0.0
    assert set(rows["flag"]) == {None, "retracted"}
    assert quarters(rows) == pytest.approx([0.0, 0.0, 0.0, 8_458_472.9354673382], rel=1e-9, abs=1e-6)
