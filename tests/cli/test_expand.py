"""`iosig expand`, and compressed traces as inputs of commands that take traced runs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner, Result

from iosig.answers.single.classes import classify_input
from iosig.answers.single.one_input import TraceInput, open_input
from iosig.answers.single.periods import Query, find_periods
from iosig.cli.expand import expand_command
from iosig.settings.model import Settings
from iosig.streams.landing import ReadOptions
from iosig.transforms.traces import checks
from iosig.transforms.traces.frames import to_frame
from iosig.transforms.traces.trace import CompressedTrace
from iosig.warehouse.errors import InputRefused, NothingToDo, UsageError
from iosig.warehouse.sources.extrapolations import compressed_traces
from iosig.warehouse.sources.recorder import calls
from iosig.warehouse.sources.recorder.text import parse_rank
from tests import compressed
from tests.naive.traces import expansion as naive


def written(path: Path, trace: CompressedTrace) -> Path:
    compressed_traces.write(path, to_frame(trace), {"process_count": str(trace.process_count)})
    return path


@pytest.fixture
def strong(tmp_path: Path) -> Path:
    return written(tmp_path / "strong.parquet", compressed.table_one(48, iterations=40))


def called(*arguments: object) -> Result:
    return CliRunner().invoke(expand_command, [str(argument) for argument in arguments])


def printed(*arguments: object) -> str:
    found = called(*arguments)
    assert found.exception is None, found.output
    return found.stdout


# ---- ranks


def test_rank_is_printed_as_by_recorder2text(strong: Path) -> None:
    lines = printed(strong, "--rank", 7).splitlines()
    assert lines[0] == "0.0010000 0.0030000 MPI_File_open 0 1 ( MPI_COMM_WORLD strong 9 %p 0-0 )"
    assert lines[3] == "0.0100000 0.0120000 MPI_File_seek 0 1 ( 0-0 1100 MPI_SEEK_SET )"
    assert len(lines) == 82


def test_calls_without_arguments_or_with_line_breaks_stay_one_line(tmp_path: Path) -> None:
    trace = compressed.table_one(4)
    (rank_class,) = trace.classes
    bare = replace(rank_class.body[0], texts=("",), module="MPI", function="MPI_Finalize")
    odd = replace(rank_class.body[0], texts=("a\nb",), module="FTRACE", function="f")
    made = replace(trace, classes=(replace(rank_class, body=(bare, odd)),))
    lines = printed(written(tmp_path / "t.parquet", made), "--rank", 0).splitlines()
    assert [line.split(" ", 2)[2] for line in lines] == ["MPI_Finalize 0 2 ( )", r"f 0 4 ( a\nb )"]


def test_selected_ranks_are_printed_once_in_order(strong: Path) -> None:
    one, two = printed(strong, "--rank", 0), printed(strong, "--rank", 5)
    assert printed(strong, "--rank", 0, "--rank", 5, "--ranks", "5,0-0") == one + two


def test_expanded_text_can_be_landed_again(tmp_path: Path) -> None:
    trace = compressed.file_per_process(12)
    path, into = written(tmp_path / "fpp.parquet", trace), tmp_path / "text"
    called(path, "--ranks", "0-11", "--output", into)
    assert sorted(file.name for file in into.iterdir()) == [f"{rank:02}.txt" for rank in range(12)]
    again = parse_rank(3, (into / "03.txt").read_bytes()).calls
    assert again["arguments"].to_list() == [text for _, _, text in naive.calls(trace, 3)]
    with open_input(into, Settings(), ReadOptions()) as found:
        assert isinstance(found, TraceInput)
        assert found.refused_count == 0
        assert found.counters["written_bytes"].sum() == 12 * 4 * 131072


def test_json_has_the_same_calls(strong: Path) -> None:
    rows = json.loads(printed(strong, "--rank", 1, "--json"))["calls"]
    assert len(rows) == 82
    assert (rows[3]["rank"], rows[3]["arguments"], rows[3]["module"]) == (1, "0-0 980 MPI_SEEK_SET", "MPIIO")


# ---- totals


def test_totals_of_a_million_ranks_are_computed(tmp_path: Path) -> None:
    path = written(tmp_path / "fpp.parquet", compressed.file_per_process(1_000_000))
    shown = printed(path, "--totals")
    assert "f.{00000000..00999999}" in shown
    assert "524 GB" in shown
    found = json.loads(printed(path, "--totals", "--json"))
    assert found["call_count"] == 6_000_000
    assert found["files"][0]["file_count"] == 1_000_000
    assert found["modules"][0]["written_bytes"] == 4_000_000 * 131072


# ---- refusals


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("--rank", 1, "--totals"),
        ("--rank", 48),
        ("--ranks", "0-48"),
        ("--ranks", "0-9999999999"),
        ("--ranks", "5-2"),
        ("--ranks", "all"),
        ("--totals", "--output", "x"),
    ],
)
def test_invalid_rank_selection_is_refused(strong: Path, arguments: tuple[object, ...]) -> None:
    assert isinstance(called(strong, *arguments).exception, UsageError)


def test_non_empty_output_folder_is_refused(strong: Path, tmp_path: Path) -> None:
    assert isinstance(called(strong, "--rank", 0, "--output", tmp_path).exception, UsageError)
    assert [path.name for path in tmp_path.iterdir()] == ["strong.parquet"]


def test_ranks_without_calls_write_nothing(tmp_path: Path) -> None:
    path, into = written(tmp_path / "t.parquet", CompressedTrace(3, ())), tmp_path / "text"
    assert isinstance(called(path, "--rank", 0, "--output", into).exception, NothingToDo)
    assert not into.exists()


def test_file_that_is_not_a_compressed_trace_is_refused(tmp_path: Path) -> None:
    other = tmp_path / "x.parquet"
    pl.DataFrame({"a": [1]}).write_parquet(other)
    assert isinstance(called(other, "--rank", 0).exception, InputRefused)


# ---- periods and classes


def test_period_is_found_in_an_extrapolated_trace(tmp_path: Path) -> None:
    path = written(tmp_path / "many.parquet", compressed.file_per_process(1_000_000, writes=64))
    found = find_periods(path, Settings(), ReadOptions(), Query(direction="write"))
    (row,) = found.rows.to_dicts()
    assert row["outcome"] == "periodic"
    assert row["period_s"] == pytest.approx(0.003, rel=0.05)
    assert [one.direction for one in found.drawn] == ["write"]
    (exact,) = find_periods(path, Settings(), ReadOptions(), Query("write", 10_000.0, (0.05, 0.15))).rows.to_dicts()
    assert exact["period_s"] == pytest.approx(0.003, rel=0.05)


def test_class_is_found_in_an_extrapolated_trace(strong: Path) -> None:
    found = classify_input(strong, Settings(), ReadOptions())
    (module,) = found.counters.to_dicts()
    assert (module["module"], module["written_bytes"], module["write_count"]) == ("MPIIO", 960 * 40, 48 * 40)
    assert found.classes["volume_bytes"].to_list() == [0.0, 960.0 * 40]


def test_trace_without_requests_has_no_signal(tmp_path: Path) -> None:
    path = written(tmp_path / "none.parquet", CompressedTrace(3, ()))
    found = find_periods(path, Settings(), ReadOptions(), Query())
    assert found.drawn == ()
    assert set(found.rows["outcome"]) <= {"no_io"}


def test_module_numbers_match_recorder() -> None:
    assert checks.MODULES == calls.MODULES
