from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings, strategies as st

from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.recorder import text
from iosig.warehouse.sources.recorder.text import parse_rank
from tests.budget import examples
from tests.naive import recorder_traces as naive
from tests.warehouse.sources.trace_landing import calls_of, expected, made_up, put, tables_of

LINE = "0.0330763 0.0330795 MPI_File_write 0 1 ( 0-0 %p 120 MPI_BYTE [33808_0] )\n"
LATER = LINE.replace("0.0330763 0.0330795", "0.0340763 0.0340795")


def rows(content: bytes | str) -> list[tuple[object, ...]]:
    found = parse_rank(3, content.encode() if isinstance(content, str) else content)
    return found.calls.drop("trace_id", "rank").rows()


def refused(content: str) -> list[tuple[int, str]]:
    return parse_rank(3, content.encode()).refused.select("line", "raw").rows()


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (LINE, (0, 0, "MPIIO", "MPI_File_write", "0-0 %p 120 MPI_BYTE [33808_0]", 0.0330763, 0.0330795)),
        ("1.0 2.5 pwrite 1 0 ( f %p 120 360 )\n", (0, 1, "POSIX", "pwrite", "f %p 120 360", 1.0, 2.5)),
        ("0.0 0.0 MPI_Finalized 0 2 ( )\n", (0, 0, "MPI", "MPI_Finalized", "", 0.0, 0.0)),
        ("0.0 0.0 H5Fopen 2 3 (  )\n", (0, 2, "HDF5", "H5Fopen", "", 0.0, 0.0)),
        ("0.0 0.0 write 0 0 (  a  b  )\n", (0, 0, "POSIX", "write", " a  b ", 0.0, 0.0)),
        ("0.0 0.0 write 0 0 ( ( a ) )\n", (0, 0, "POSIX", "write", "( a )", 0.0, 0.0)),
        ("0.0 0.0 solve 0 4 ( )", (0, 0, "FTRACE", "solve", "", 0.0, 0.0)),
        ("0.0 0.0 open 0 0 ( dä )\r\n", (0, 0, "POSIX", "open", "dä", 0.0, 0.0)),
    ],
)
def test_line_is_parsed_as_call(line: str, expected: tuple[object, ...]) -> None:
    assert rows(line) == [expected]
    assert refused(line) == []


@pytest.mark.parametrize("piece_bytes", [1, 1 << 20])
def test_repeated_calls_are_refused(piece_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "PIECE_BYTES", piece_bytes)
    first, second = LINE, LINE.replace("33808", "33809")
    instant = "0.5 0.5 fflush 0 0 ( f )\n"
    content = first + second + first + second + instant * 2
    found = parse_rank(3, content.encode())
    # calls that take no measurable time may follow each other
    assert found.calls["call"].to_list() == [0, 1, 4, 5]
    assert found.refused["line"].to_list() == [3, 4]
    assert "repeats a call" in found.refused["reason"][0]


@pytest.mark.parametrize(
    "line",
    [
        "",
        "x",
        "0.1",
        "0.1 0.2 write 0 0",
        "0.1 0.2 write 0 0 ( f %p 13",
        "0.1 0.2 write 0 0 ()",
        "0.1 0.2 write 0 0 (f )",
        "0.1 0.2 write 0 5 ( f )",
        "0.1 0.2 write 0 -1 ( f )",
        "0.1 0.2 write 256 0 ( f )",
        "0.1 0.2 write -1 0 ( f )",
        "0.1 0.2 write x 0 ( f )",
        "nan 0.2 write 0 0 ( f )",
        "0.1 inf write 0 0 ( f )",
        "0.1 1e400 write 0 0 ( f )",
        "-0.1 0.2 write 0 0 ( f )",
        "0,1 0.2 write 0 0 ( f )",
        " 0.1 0.2 write 0 0 ( f )",
    ],
)
def test_invalid_line_is_refused_with_number_and_others_are_kept(line: str) -> None:
    content = f"{LINE}{line}\n{LATER}"
    assert [row[0] for row in rows(content)] == [0, 2]
    assert refused(content) == [(2, line)]


def test_undecodable_bytes_are_escaped() -> None:
    assert rows(b"0.1 0.2 open 0 0 ( a\xffb )\n")[0][4] == "a\\xffb"


def test_empty_file_has_no_calls_and_other_text_is_refused() -> None:
    assert rows("") == []
    with pytest.raises(InputRefused, match="No line"):
        parse_rank(0, b"JobID|State\n")


@settings(max_examples=examples(40), deadline=None)
@given(st.lists(st.sampled_from([LINE, "nothing\n", "\n", "0.1 0.2 w 0 0 ( ä )\n"]), max_size=30), st.integers(1, 200))
def test_block_size_has_no_effect(lines: list[str], size: int) -> None:
    content = "".join([LINE, *lines]).encode()
    whole = parse_rank(0, content)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text, "PIECE_BYTES", size)
        cut = parse_rank(0, content)
    assert whole.calls.equals(cut.calls)
    assert whole.refused.equals(cut.refused)


# ---- traces


@pytest.mark.parametrize("name", ["{}.txt", "{:03}.txt"])
def test_text_yields_same_calls_as_raw_trace(tmp_path: Path, name: str) -> None:
    ranks = made_up(4, seed=9)
    files = {name.format(rank): naive.text(calls) for rank, calls in enumerate(ranks)}
    found = calls_of(put(tmp_path, files))
    assert found == calls_of(put(tmp_path / "raw", naive.separate(ranks)))
    assert found == [row for rank, calls in enumerate(ranks) for row in expected(rank, calls)]


def test_properties_missing_in_text_are_null(tmp_path: Path) -> None:
    found = tables_of(put(tmp_path, {"0.txt": LINE, "1.txt": ""}))
    trace = found["traces"].row(0, named=True)
    assert (trace["tracer_version"], trace["started_at"], trace["ended_on"]) == (None, None, None)
    assert (trace["process_count"], trace["time_resolution_s"], trace["duration_s"]) == (2, 1e-7, 0.0330795)
    assert found["trace_modules"]["outcome"].to_list() == ["sound"]


def test_time_resolution_follows_from_printed_digits(tmp_path: Path) -> None:
    found = tables_of(put(tmp_path, {"0.txt": "", "1.txt": "0.001 0.002 write 0 0 ( f %p 1 )\n"}))
    assert found["traces"]["time_resolution_s"].item() == 1e-3


def test_missing_or_unreadable_rank_makes_trace_partial(tmp_path: Path) -> None:
    found = tables_of(put(tmp_path, {"0.txt": LINE, "2.txt": "junk\n", "4.txt": LINE}))
    reasons = found["rejects"]["reason"].to_list()
    assert reasons == ["Rank 2 is skipped. No line of its file is a call.", "Ranks 1, 3 of 5 without a file."]
    assert found["trace_modules"].select("outcome", "record_count").rows() == [("partial", 2)]


def test_refused_lines_make_trace_partial(tmp_path: Path) -> None:
    found = tables_of(put(tmp_path, {"0.txt": f"{LINE}junk\n{LATER}"}))
    assert found["rejects"].select("line", "raw").rows() == [(2, "junk")]
    assert found["trace_modules"].select("outcome", "reason").rows() == [("partial", "Refused: 1 calls.")]


@pytest.mark.parametrize("names", [("0.txt", "00.txt"), ("1.txt", "001.txt")])
def test_two_files_of_same_rank_are_refused(tmp_path: Path, names: tuple[str, str]) -> None:
    with pytest.raises(InputRefused, match="both of rank"):
        tables_of(put(tmp_path, dict.fromkeys(names, LINE)))


def test_calls_are_numbered_by_line() -> None:
    found = parse_rank(0, f"junk\n{LINE}\n{LATER}".encode())
    assert found.calls["call"].to_list() == [1, 3]
    assert found.refused["line"].to_list() == [1, 3]
    assert found.calls.schema["call"] == pl.Int64
