from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.files.limits import Limits, apply_limits
from iosig.warehouse.sources.files.opening import read_head
from iosig.warehouse.sources.polls import csv, polls
from iosig.warehouse.sources.polls.csv import SOURCE
from iosig.warehouse.sources.protocol import Head, Reading, recognize
from iosig.warehouse.sources.rows import text_blocks
from tests.budget import examples
from tests.naive.sources.rows import delimited as naive
from tests.warehouse.sources.batch_reading import read_input

HEADER = "polled_at,controller,read_bytes_per_s,write_bytes_per_s"
GOOD = ("2026-01-01T00:00:02Z,a,1,2", "2026-01-01T00:00:02Z,b,3,4", "2026-01-01T00:00:04Z,a,5,6.5")


def write(folder: Path, *lines: str, header: str = HEADER, end: str = "\n") -> Path:
    path = folder / "polls.csv"
    path.write_bytes((end.join([header, *lines]) + end).encode())
    return path


def at(second: float) -> datetime:
    return datetime.fromtimestamp(1767225600 + second, UTC)


def values(rows: pl.DataFrame) -> list[tuple[object, ...]]:
    return rows.select("polled_at", "controller", "interval_s", "read_bytes_per_s", "write_bytes_per_s", "flag").rows()


def test_interval_is_distance_between_polls(tmp_path: Path) -> None:
    rows, refused = read_input(SOURCE, write(tmp_path, *GOOD))
    assert refused.is_empty()
    assert values(rows) == [
        (at(2), "a", 2.0, 1.0, 2.0, None),
        (at(2), "b", 2.0, 3.0, 4.0, None),
        (at(4), "a", 2.0, 5.0, 6.5, None),
    ]
    assert rows["filesystem"].unique().to_list() == ["default"]


def test_lines_before_header_and_later_headers_are_recognized(tmp_path: Path) -> None:
    names = HEADER.split(",")
    swapped = [*names[:2], names[3], names[2]]
    text = [
        "# collector 1.2",
        "",
        "Last login: today",
        HEADER,
        GOOD[0],
        "# restarted, with more",
        HEADER,
        GOOD[1],
        ",".join(swapped),
        GOOD[2],
    ]
    path = tmp_path / "polls.csv"
    path.write_text("\n".join(text) + "\n")
    assert recognize(read_head(path)) == SOURCE
    rows, refused = read_input(SOURCE, path)
    assert refused.select("line", "raw").rows() == [(3, "Last login: today")]
    expected = values(read_input(SOURCE, write(tmp_path, *GOOD))[0])
    # under the last header, the rates have changed places
    swap = (*expected[2][:3], expected[2][4], expected[2][3], expected[2][5])
    assert values(rows) == [*expected[:2], swap]


def test_first_cause_is_named_if_few_rows_are_readable(tmp_path: Path) -> None:
    bad = ['2026-01-01T00:00:04Z,a,"1,001",2', '2026-01-01T00:00:06Z,a,"2,001",2']
    with pytest.raises(InputRefused, match="Line 3: `1,001` is not a number") as refusal:
        read_input(SOURCE, write(tmp_path, GOOD[0], *bad))
    assert "without separators" in refusal.value.remedy
    with pytest.raises(InputRefused, match="All polls are of one instant"):
        read_input(SOURCE, write(tmp_path, GOOD[0]))


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_delimiters_line_ends_quotes_and_bom_are_supported(tmp_path: Path, end: str, delimiter: str) -> None:
    lines = [line.replace(",", delimiter).replace("a", '"a"') for line in GOOD]
    path = write(tmp_path, *lines, header="\ufeff" + HEADER.replace(",", delimiter), end=end)
    assert csv.sniff(read_head(path))
    rows, refused = read_input(SOURCE, path)
    assert refused.is_empty()
    assert rows["controller"].to_list() == ["a", "b", "a"]


def test_columns_may_be_mapped_and_others_are_ignored(tmp_path: Path) -> None:
    header = "note,ts,ctl,line,r,w,note,dt,fs,read_iops"
    lines = ["x,1767225602,a,7,1,2,y,4,scratch,9", "x,1767225604,a,7,1,2,y,4,,"]
    columns = {
        "polled_at": "ts",
        "controller": "ctl",
        "read_bytes_per_s": "r",
        "write_bytes_per_s": "w",
        "interval_s": "dt",
        "filesystem": "fs",
    }
    rows, refused = read_input(SOURCE, write(tmp_path, *lines, header=header), Reading("home", columns=columns))
    assert refused.is_empty()
    assert rows["filesystem"].to_list() == ["scratch", "home"]
    assert rows["interval_s"].to_list() == [4.0, 4.0]
    assert rows["read_iops"].to_list() == [9.0, None]
    assert rows["write_iops"].to_list() == [None, None]


def test_header_only_file_yields_no_rows(tmp_path: Path) -> None:
    rows, refused = read_input(SOURCE, write(tmp_path))
    assert rows.is_empty()
    assert refused.is_empty()


def test_overlong_line_is_refused_in_bounded_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv, "BLOCK_BYTES", 64)
    with apply_limits(Limits(max_line_bytes=128)), pytest.raises(InputRefused, match="longer"):
        read_input(SOURCE, write(tmp_path, *GOOD, "x" * 500))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (HEADER + "\n", True),
        ("controller;x;write_bytes_per_s;read_bytes_per_s;polled_at\n1;2;3;4;5\n", True),
        ("time_s,read_bytes_per_s,write_bytes_per_s\n", False),
        ("polled_at,controller,read_bytes_per_s\n", False),
        ("", False),
        ('"unbalanced,' + HEADER, False),
    ],
)
def test_header_is_recognized(text: str, expected: bool) -> None:
    assert csv.sniff(Head("x", text.encode())) is expected
    if expected:
        assert recognize(Head("x", text.encode())) is SOURCE


CELL = st.sampled_from(["1", "2.5", "", "-1", "nan", "x", "1e3", " 4", '"5"', "007", "+6", "0x1"])
TIME = st.sampled_from(["1767225602", "2026-01-01T00:00:04Z", "2026-01-01 00:00:06", "", "no", "2026-13-01T00:00:00"])
NAME = st.sampled_from(["a", "b ", "", '"c"', "ä", "d;e", 'f"g'])
ROW = st.tuples(TIME, NAME, CELL, CELL).map(",".join)
LINE = st.one_of(ROW, ROW, ROW, st.sampled_from(["", "a,b", ",,,,", "a,b,c,d,"]))


@given(st.lists(LINE, max_size=12), st.booleans())
@settings(max_examples=examples(25), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_block_size_has_no_effect_and_cells_match_naive_reader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: list[str], has_end: bool
) -> None:
    head = ["1767225600,z,1,1", "1767225604,z,1,1"]
    path = write(tmp_path, *head, *lines)
    if not has_end:
        path.write_bytes(path.read_bytes().rstrip(b"\n"))
    found = []
    for block, held, is_naive in ((1 << 20, 100, True), (1 << 20, 100, False), (40, 100, False), (40, 3, False)):
        with monkeypatch.context() as patch:
            patch.setattr(csv, "BLOCK_BYTES", block)
            patch.setattr(polls, "MAX_BUFFERED_ROWS", held)
            if is_naive:
                patch.setattr(text_blocks, "split_lines", naive.split_lines)
            rows, refused = read_input(SOURCE, path)
            found.append((rows.sort(pl.all()), refused.sort("line", "reason")))
    content = path.read_bytes().decode().split("\n")[1:]
    assert found[0][0].height + found[0][1].height == sum(bool(line.strip()) for line in content)
    for rows, refused in found[1:]:
        assert rows.equals(found[0][0])
        assert refused.equals(found[0][1])
