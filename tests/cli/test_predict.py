"""`iosig predict` agrees with `iosig period`, prints and draws predictions, and refuses invalid inputs."""

from __future__ import annotations

import json
import math
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import matplotlib.image
import numpy as np
import pytest

from iosig.answers.single.one_input import TraceInput, open_input
from iosig.answers.single.periods import Query, find_periods
from iosig.cli.predict import describe_pending_burst, format_coverage
from iosig.settings.model import Settings
from iosig.settings.periods import PeriodSettings
from iosig.streams.following.follower import Follower
from iosig.streams.following.inputs import Opener
from iosig.streams.landing import ReadOptions
from iosig.transforms.periods.ftio_outliers import Merge
from iosig.transforms.predictions.predictor import OnlineParams
from iosig.warehouse.contracts.traces import TRACE_REQUESTS
from iosig.warehouse.store.store import Store
from tests.budget import one_in
from tests.flows.growing_traces import flushes, line_of, requests, trace, written
from tests.nights import Cli
from tests.prediction_rows import NO_PERIOD, job_prediction, prediction
from tests.streams.following.landed_polls import at, land_jobs, land_polls

REAL = ("8.jsonl", "384.msgpack")


def predicted(path: Path, **params: Any) -> list[dict[str, Any]]:
    """Return the predictions of a complete trace."""
    rows: list[dict[str, Any]] = []
    Follower([Opener(OnlineParams(**params)).trace(path)], rows.extend, lambda *_: None).finish()
    return rows


def followed(cli: Cli, path: Path, *more: object) -> tuple[int, list[dict[str, Any]], str]:
    """Follow until the input is idle; return the exit code, the printed rows, and standard error."""
    end = ("--follow", "--interval", 0.01, "--idle-timeout", 0.05, "--journal", path.parent / "journal")
    code, out, err = cli("predict", path, *end, *more)
    return code, [json.loads(line) for line in out.splitlines()], err


# ---- numbers


@pytest.mark.parametrize("name", REAL)
@pytest.mark.parametrize(
    ("strategy", "method"),
    one_in(2, [("all", "null_tested"), ("all", "dft"), ("adaptive", "dft"), ("adaptive", "null_tested")]),
)
def test_last_prediction_equals_the_period_of_its_window(
    shared_data: Path, name: str, method: str, strategy: str
) -> None:
    path = shared_data / "tmio" / name
    last = {row["direction"]: row for row in predicted(path, method=method, strategy=strategy)}
    assert set(last) == {"read", "write"}
    for direction, row in last.items():
        # FTIO's methods search until the last sample with I/O, while the window ends at the current time
        window = (row["window_start_s"], row["window_start_s"] + row["sample_count"] / row["sampling_hz"])
        assert window[1] == row["window_end_s"] or (method == "dft" and window[1] < row["window_end_s"])
        asked = Query(direction, row["sampling_hz"], window, method=row["method"])
        (found,) = find_periods(path, Settings(), ReadOptions(), asked).rows.to_dicts()
        names = ("outcome", "period_s", "frequency_hz", "sample_count", "sampling_hz", "false_alarm_probability")
        assert [row[each] for each in names] == [found[each] for each in names]
        refined = found["refined_confidence"]
        assert row["confidence"] == (found["confidence"] if refined is None else refined)


@pytest.mark.parametrize("name", REAL)
def test_each_request_is_counted_once(shared_data: Path, name: str) -> None:
    path = shared_data / "tmio" / name
    last = {row["direction"]: row for row in predicted(path)}
    with open_input(path, Settings(), ReadOptions()) as found:
        assert isinstance(found, TraceInput)
        landed = found.read(TRACE_REQUESTS)
    for direction, row in last.items():
        moved = landed.filter(direction=direction)["request_bytes"].drop_nulls().to_list()
        assert row["volume_bytes"] == math.fsum(moved) > 0
        assert row["request_count"] == len(landed.filter(direction=direction))


@pytest.mark.slow
def test_line_by_line_reading_equals_reading_at_once(shared_data: Path, tmp_path: Path) -> None:
    content = (shared_data / "tmio" / "8.jsonl").read_bytes()
    whole, growing = written(tmp_path / "whole.jsonl", content), written(tmp_path / "run.jsonl", b"")
    rows: list[dict[str, Any]] = []
    follower = Follower([Opener().trace(growing)], rows.extend, lambda *_: None)
    with growing.open("ab", buffering=0) as file:
        for line in content.splitlines(keepends=True):
            file.write(line)
            follower.step()
    follower.finish()
    own = ("predicted_at", "predicted_on", "followed_id", "subject_id")
    timeless = [[{n: v for n, v in row.items() if n not in own} for row in each] for each in (rows, predicted(whole))]
    assert timeless[0] == timeless[1]


@pytest.mark.parametrize("zero_s", [0.0, 1.7e9], ids=["from-0", "since-1970"])
def test_flushes_with_mixed_directions_and_zero_durations_are_counted(tmp_path: Path, zero_s: float) -> None:
    modes = ("read_sync", "write_sync")
    flushed = [{modes[number % 2]: requests(zero_s + 10.0 * number)} for number in range(12)]
    # half of a phase arrives with the next flush, which is of the other direction
    late, flushed[7] = flushed[7]["write_sync"][3:], {"write_sync": flushed[7]["write_sync"][:3]}
    flushed[8]["write_sync"] = late
    # a rate over no time has an unknown size
    flushed.insert(6, {"write_sync": [(1e6, zero_s + 50.5, zero_s + 50.5), (2e6, zero_s + 51.0, zero_s + 51.0)]})
    flushed[9]["write_async_t"] = [(0.0, zero_s + 80.5, zero_s + 80.5)]
    lines = map(line_of, flushed)
    rows = predicted(written(tmp_path / "odd.jsonl", b"".join(lines)))
    last = {row["direction"]: row for row in rows}
    assert {name: row["volume_bytes"] for name, row in last.items()} == pytest.approx({"read": 36e6, "write": 36e6})
    assert last["write"]["request_count"] == 36 + 2 + 1
    assert last["write"]["period_s"] == pytest.approx(20.0, rel=0.02)
    assert {row["run_number"] for row in rows} == {1}
    assert all(row["window_start_s"] >= zero_s for row in rows)


# ---- output and figures


@pytest.mark.parametrize("columns", [80, 120])
def test_table_for_each_direction_fits_the_terminal(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    path = trace(tmp_path / "run.jsonl", 20)
    monkeypatch.setenv("COLUMNS", str(columns))
    code, out, _ = cli("predict", path)
    assert code == 0
    # a title may be wrapped, as its path is long
    told = "".join(out.split())
    assert [told.count(f"run.jsonl,{direction}") for direction in ("read", "write")] == [1, 1]
    assert max(map(len, out.splitlines())) <= columns
    assert "longer" in out
    assert "── 1" not in out


def test_finished_job_has_no_next_burst(cli: Cli, tmp_path: Path) -> None:
    store = Store(tmp_path / "warehouse")
    bursts = [(10.0 * number, "a", 0.0, 1e9 if number % 6 == 1 else 0.0) for number in range(1, 61)]
    land_polls(store, bursts)
    job = {"cluster": "c", "job_id": "7", "comment": "fs=scratch", "started_at": at(0)}
    told = {}
    for end_s, state in ((None, "RUNNING"), (600, "COMPLETED")):
        land_jobs(store, job | {"ended_at": None if end_s is None else at(end_s), "state": state})
        code, out, _ = cli("--warehouse", store.root, "predict", "--job", "7", "--json", "--direction", "write")
        assert code == 0
        told[state] = [json.loads(line) for line in out.splitlines()]
    running, over = told["RUNNING"][-1], told["COMPLETED"][-1]
    assert (running["is_final"], running["next_burst_start_s"]) == (False, pytest.approx(610.0, abs=15.0))
    assert (over["is_final"], over["phase_state"], over["next_burst_outcome"]) == (True, "end", "ended")
    assert (over["next_burst_start_s"], over["next_burst_bytes"]) == (None, None)
    _, out, _ = cli("--warehouse", store.root, "predict", "--job", "7", "--direction", "write")
    assert "run is over" in out


def test_only_traces_leave_the_end_of_the_run_open() -> None:
    assert "The last prediction has no burst to compare with" in describe_pending_burst(prediction())
    assert describe_pending_burst(prediction(**NO_PERIOD)) == describe_pending_burst(job_prediction()) == ""


def test_epoch_timestamps_are_printed_as_dates(cli: Cli, tmp_path: Path) -> None:
    _, out, _ = cli("predict", trace(tmp_path / "run.jsonl", 3, first_s=1.7e9))
    told = " ".join(out.split())
    assert "write, from 2023-11-14 22:13:3" in told
    assert " 22:13:4" in told
    assert "e+09" not in told


@pytest.mark.parametrize("count", [1, 6], ids=["one-evaluation", "both-directions"])
@pytest.mark.slow
def test_current_and_previously_followed_predictions_are_drawn(cli: Cli, tmp_path: Path, count: int) -> None:
    path = trace(tmp_path / "run.jsonl", count)
    code, _, err = cli("predict", path, "--plot", tmp_path / "a.png", "--automaton", tmp_path / "b.svg")
    assert (code, err.count("Drawn: write of run.jsonl")) == (0, 2)
    assert np.asarray(matplotlib.image.imread(tmp_path / "a.png")).std() > 0.01
    assert (tmp_path / "b.svg").read_bytes().startswith(b"<?xml")
    followed(cli, path)
    # the run is over, so the figure uses the journal
    code, rows, _ = followed(cli, path, "--plot", tmp_path / "c.svg", "--automaton", tmp_path / "d.json")
    assert (code, rows) == (0, [])
    assert (tmp_path / "c.svg").exists()
    graph = json.loads((tmp_path / "d.json").read_text())
    assert (graph["followed_id"], graph["direction"], graph["run_number"]) == (str(path), "write", 1)


@pytest.mark.parametrize(("name", "replacement"), [("page_hinkley", "cusum"), ("adwin", "clipped_cusum")])
def test_removed_detector_is_refused_with_its_replacement(
    cli: Cli, tmp_path: Path, name: str, replacement: str
) -> None:
    code, _, err = cli("predict", tmp_path / "run.jsonl", "--detector", name)
    assert (code, f"{name} was removed: use {replacement}." in err) == (2, True)


def test_nothing_is_drawn_without_predictions(cli: Cli, tmp_path: Path) -> None:
    path = written(tmp_path / "run.jsonl", b'{"io_time": {}}\n')
    assert cli("predict", path, "--plot", tmp_path / "plot.png", "--strict")[0] == 5
    code, _, err = followed(cli, path, "--automaton", tmp_path / "automaton.json")
    assert (code, "Nothing to draw" in err) == (0, True)
    assert not (tmp_path / "plot.png").exists()


# ---- inputs


@pytest.mark.parametrize("merge", ["none", "agreement"])
def test_test_of_outliers_is_that_of_an_offline_search(
    shared_data: Path, cli: Cli, tmp_path: Path, merge: Merge
) -> None:
    path = shared_data / "tmio" / "8.jsonl"
    options = ("--direction", "write", "--method", "dft", "--outliers", "lof", "--outlier-merge", merge)
    code, out, _ = cli("--warehouse", tmp_path, "predict", path, "--strategy", "all", *options, "--json")
    assert code == 0
    row = json.loads(out.splitlines()[-1])
    own = Settings(periods=PeriodSettings(outliers="local_outlier_factor", outlier_merge=merge))
    window = (row["window_start_s"], row["window_start_s"] + row["sample_count"] / row["sampling_hz"])
    query = Query("write", row["sampling_hz"], window, method="dft")
    (expected,) = find_periods(path, own, ReadOptions(), query).rows.to_dicts()
    names = ("outcome", "period_s", "sample_count", "confidence")
    assert [row[name] for name in names] == [expected[name] for name in names]


def test_duplicate_inputs_are_followed_once(cli: Cli, tmp_path: Path) -> None:
    path = trace(tmp_path / "run.jsonl", 3)
    code, out, _ = cli("predict", path, path, tmp_path, "--json")
    assert (code, len(out.splitlines())) == (0, 4)
    code, rows, _ = followed(cli, path, path)
    assert (code, len(rows)) == (0, 6)


def test_control_characters_in_names_are_escaped(cli: Cli, tmp_path: Path) -> None:
    path = trace(Path(os.fsdecode(os.fsencode(tmp_path) + b"/n\xff\x1b[31m\nx")), 3)
    code, rows, err = followed(cli, path)
    assert code == 0
    assert {row["followed_id"] for row in rows} == {path.as_uri()}
    assert {row["subject_id"] for row in rows} == {"n\\xff\x1b[31m\nx"}
    plain = trace(tmp_path / "a\x1b[31m\nx", 3)
    code, rows, err = followed(cli, plain)
    assert {row["followed_id"] for row in rows} == {str(plain)}
    assert "\x1b" not in err
    assert len(err.splitlines()) == 1


def test_finished_run_resumes_when_its_file_grows(cli: Cli, tmp_path: Path) -> None:
    content = list(flushes(9))
    path = written(tmp_path / "run.jsonl", b"".join(content[:4]))
    first = followed(cli, path)[1]
    assert [row["is_final"] for row in first] == [False] * 6 + [True] * 2
    code, rows, err = followed(cli, path)
    assert (code, rows, "had ended" in err) == (0, [], True)
    path.write_bytes(b"".join(content))
    code, rows, _ = followed(cli, path)
    assert code == 0
    assert [row["events"] for row in rows] == [["resumed"], *[[]] * (len(rows) - 3), ["end"], ["end"]]
    assert {row["run_number"] for row in rows} == {1}
    path.unlink()
    trace(path, 4, first_s=500.0, seed=2)
    rows = followed(cli, path)[1]
    # a new file often gets the inode number of the removed one
    assert rows[0]["events"] in (["replaced", "resumed"], ["truncated", "resumed"])
    assert rows[0]["run_number"] == 2


def test_reset_begins_another_run_and_prints_only_its_rows(cli: Cli, tmp_path: Path) -> None:
    path = trace(tmp_path / "run.jsonl", 3)
    first = followed(cli, path)[1]
    again = followed(cli, path, "--reset")[1]
    assert len(first) == len(again) == 6
    assert {row["run_number"] for row in again} == {2}
    assert min(row["evaluation"] for row in again) == 3
    code, rows, err = followed(cli, path, "--method", "dft")
    assert (code, rows) == (2, [])
    assert "other parameters" in err


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ("content = zeroblob(length(content))", "it is damaged"),
        ("position = json_extract(position, '$.position')", "it has another version"),
    ],
)
def test_unusable_state_is_reported_and_replaced_by_reset(cli: Cli, tmp_path: Path, change: str, fault: str) -> None:
    path = trace(tmp_path / "run.jsonl", 3)
    followed(cli, path)
    with closing(sqlite3.connect(tmp_path / "journal")) as connection, connection:
        connection.execute(f"update states set {change}")
    code, rows, err = followed(cli, path)
    assert (code, rows) == (2, [])
    assert f"The saved state of {path} is unusable: {fault}. Start over with --reset." in err
    again = followed(cli, path, "--reset")[1]
    assert {row["run_number"] for row in again} == {2}
    assert min(row["evaluation"] for row in again) == 3


def test_refused_lines_are_reported_with_reasons(cli: Cli, tmp_path: Path) -> None:
    path = written(tmp_path / "run.jsonl", b"".join(flushes(2)) + b"hello\n" * 30)
    code, out, err = cli("predict", path, "--json")
    assert (code, len(out.splitlines())) == (0, 3)
    assert cli("predict", path, "--strict")[0] == 3
    assert err.count("is refused: The content is not complete JSON") == 10
    assert err.endswith("more lines are refused.\n")
    assert cli("predict", written(tmp_path / "no.jsonl", b"hello\n"))[0] == 3


def test_format_written_after_a_run_is_refused_by_its_name(cli: Cli, tmp_path: Path) -> None:
    path = written(tmp_path / "polls.csv", b"polled_at,controller,read_bytes_per_s,write_bytes_per_s\n")
    code, _, err = cli("predict", path)
    assert (code, "has the format polls-csv" in err, "`iosig period`" in err) == (2, True, True)


def test_hundreds_of_inputs_are_followed(cli: Cli, tmp_path: Path) -> None:
    folder = tmp_path / "many"
    folder.mkdir()
    content = line_of({"write_sync": requests(1.0)})
    for number in range(300):
        written(folder / f"{number}.jsonl", content)
    code, out, _ = cli("predict", folder, "--json")
    assert (code, len(out.splitlines())) == (0, 300)


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        (("x", "--job", "7"), "Name traces to predict"),
        (("x", "--since", "2026-01-01"), "--since needs --lmt"),
        (("--lmt", "x"), "--filesystem, and either --since or --job"),
        (("x", "--strategy", "fixed"), "--window-s and --strategy fixed need"),
        (("x", "--window-s", "3"), "--window-s and --strategy fixed need"),
        (("x", "--reset"), "need --follow"),
        (("x", "--cluster", "c"), "--cluster needs --job"),
        (("x", "--filesystem", "f"), "--filesystem needs"),
        (("x", "--time-zone", "UTC"), "--time-zone needs --lmt"),
        (("x", "--follow", "--outliers", "lof"), "use it with dft or merged"),
        (("x", "--follow", "--outlier-merge", "union"), "use it with dft or merged"),
        (("x", "--follow", "--plot", "x.jpg"), "end in .png, .svg"),
        (("x", "--follow", "--plot", "nowhere/x.png"), "nowhere does not exist"),
    ],
    ids=lambda value: value.replace(" ", "-") if isinstance(value, str) else "_".join(value) or "nothing",
)
def test_conflicting_options_are_refused(cli: Cli, argv: tuple[str, ...], told: str) -> None:
    code, out, err = cli("predict", *argv)
    assert (code, out) == (2, "")
    assert told in err


@pytest.mark.parametrize("kind", ["foreign", "folder", "missing_folder", "below_a_file"])
def test_unusable_journal_is_refused_and_missing_journal_is_created(cli: Cli, tmp_path: Path, kind: str) -> None:
    path = trace(tmp_path / "run.jsonl", 2)
    places = {"folder": tmp_path, "missing_folder": tmp_path / "a" / "b" / "j", "below_a_file": path / "j"}
    place = places.get(kind) or written(tmp_path / "foreign", b"no journal")
    code, out, err = cli("predict", path, "--follow", "--journal", place, "--interval", 0.01, "--idle-timeout", 0.05)
    if kind == "missing_folder":
        assert (code, len(out.splitlines())) == (0, 5)
    else:
        assert (code in (2, 6), out, "Traceback" in err) == (True, "", False)
        assert place.is_dir() or not place.exists() or place.read_bytes() == b"no journal"


def test_accuracy_counts_only_predictions_before_a_detected_burst() -> None:
    def at(end_s: float, earliest_s: float | None, latest_s: float | None) -> dict[str, float | None]:
        return {"window_end_s": end_s, "next_burst_earliest_s": earliest_s, "next_burst_latest_s": latest_s}

    rows = [at(5.0, 9.0, 11.0), at(15.0, 22.0, 23.0), at(16.0, None, None), at(25.0, 29.0, 31.0)]
    told = format_coverage(rows, [0.0, 10.0, 20.0])
    assert "in 1 of 2 cases" in told
    assert told.endswith("1 more is not counted, as no burst followed.")
    assert format_coverage(rows[3:], [0.0, 10.0, 20.0]) == ""
