"""`iosig predict` as real processes: killed, interrupted, without a working output, and running concurrently."""

from __future__ import annotations

import json
import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from iosig.warehouse.store.journal import Journal
from tests.flows.forked_commands import Commands
from tests.flows.growing_traces import flushes, trace, write_bit_by_bit

Rows = dict[tuple[str, int], dict[str, Any]]
_TIMES = ("predicted_on", "predicted_at", "followed_id", "subject_id")
_PATIENCE_S = 60.0
#: a method with quick evaluations
_QUICK = ("--method", "dft")


@pytest.fixture(scope="module")
def commands() -> Iterator[Commands]:
    with Commands() as found:
        yield found


def follow(commands: Commands, path: Path, *more: object) -> int:
    """Start to follow a trace or a folder; output goes to the same folder."""
    folder = path.parent
    argv = ("predict", path, "--follow", "--journal", folder / "journal", "--interval", 0.01, *_QUICK, *more)
    return commands.start(argv, folder / "printed", folder / "told")


def kept(folder: Path) -> list[dict[str, Any]]:
    """Return the journal's rows, or none while it does not exist."""
    if not (folder / "journal").exists():
        return []
    with Journal(folder / "journal") as journal:
        return journal.rows_after(0, 10_000)[0].to_dicts()


def timeless(rows: list[dict[str, Any]]) -> Rows:
    """Return rows by direction and number, which must be unique, without times and input names."""
    found = {
        (row["direction"], row["evaluation"]): {name: value for name, value in row.items() if name not in _TIMES}
        for row in rows
    }
    assert len(found) == len(rows)
    return found


def printed(folder: Path) -> dict[tuple[str, str, int], str]:
    """Return the printed lines by evaluation; a line printed twice must be the same."""
    found: dict[tuple[str, str, int], str] = {}
    for line in (folder / "printed").read_text().splitlines(keepends=True):
        if not line.endswith("\n"):
            continue
        row = json.loads(line)
        assert found.setdefault((row["followed_id"], row["direction"], row["evaluation"]), line) == line
    return found


def wait_until(is_so: Callable[[], bool]) -> None:
    end_s = time.monotonic() + _PATIENCE_S
    while not is_so():
        assert time.monotonic() < end_s, "it takes too long"
        time.sleep(0.02)


def has_printed(folder: Path, count: int) -> bool:
    return (folder / "printed").exists() and (folder / "printed").read_bytes().count(b"\n") >= count


def undisturbed(commands: Commands, folder: Path, content: list[bytes]) -> Rows:
    """Return the predictions of a separate run on a complete file."""
    folder.mkdir()
    path = folder / "run.jsonl"
    path.write_bytes(b"".join(content))
    count = sum(1 + (number % 3 == 0) for number in range(len(content)))
    process = follow(commands, path)
    wait_until(lambda: has_printed(folder, count))
    os.kill(process, signal.SIGTERM)
    assert commands.wait(process) == 0
    return timeless(kept(folder))


@pytest.mark.slow
def test_killed_follower_neither_loses_nor_duplicates_evaluations(commands: Commands, tmp_path: Path) -> None:
    chance = random.Random(20)
    content = list(flushes(30))
    expected = undisturbed(commands, tmp_path / "whole", content)
    folder = tmp_path / "killed"
    folder.mkdir()
    path = folder / "run.jsonl"
    writer = threading.Thread(target=write_bit_by_bit, args=(path, content, 0.02))
    writer.start()
    for _ in range(5):
        process = follow(commands, path)
        time.sleep(chance.uniform(0.05, 0.5))
        os.kill(process, signal.SIGKILL)
        assert commands.wait(process) == -signal.SIGKILL
    writer.join()
    begun = (folder / "told").read_text().count("\n")
    process = follow(commands, path)
    wait_until(lambda: (folder / "told").read_text().count("\n") > begun)
    wait_until(lambda: has_printed(folder, 1) and len(printed(folder)) == len(expected))
    os.kill(process, signal.SIGTERM)
    assert commands.wait(process) == 0
    rows = kept(folder)
    assert timeless(rows) == expected
    assert {(row["followed_id"], row["direction"], row["evaluation"]) for row in rows} == set(printed(folder))
    assert set((folder / "told").read_text().splitlines()) == {f"Following {path}. Press Ctrl-C to stop."}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "SIGTERM"])
def test_signal_ends_the_follower_without_duplicate_output(
    commands: Commands, tmp_path: Path, number: signal.Signals
) -> None:
    path = trace(tmp_path / "run.jsonl", 3)
    for count in (4, 7):
        process = follow(commands, path)
        wait_until(lambda count=count: has_printed(tmp_path, count))  # type: ignore[misc]
        os.kill(process, number)
        assert commands.wait(process) == 0
        with path.open("ab") as file:
            file.write(b"".join(list(flushes(6))[3:5]))
    assert len((tmp_path / "printed").read_text().splitlines()) == len(printed(tmp_path)) == len(kept(tmp_path)) == 7
    assert "Traceback" not in (tmp_path / "told").read_text()


def test_missing_trace_is_awaited_and_its_end_is_reported(commands: Commands, tmp_path: Path) -> None:
    path = tmp_path / "later.jsonl"
    process = follow(commands, path, "--idle-timeout", 1.5)
    wait_until(lambda: (tmp_path / "told").exists() and "Following" in (tmp_path / "told").read_text())
    trace(path, 2)
    assert commands.wait(process) == 0
    last = kept(tmp_path)[-1]
    assert (last["is_final"], last["events"], last["phase_state"]) == (True, "end", "end")
    assert len(printed(tmp_path)) == len(kept(tmp_path)) == 5


@pytest.mark.slow
def test_followers_share_a_journal_but_not_a_trace(commands: Commands, tmp_path: Path) -> None:
    paths = [trace(tmp_path / name, 2) for name in ("a.jsonl", "b.jsonl")]
    first = follow(commands, paths[0])
    wait_until(lambda: has_printed(tmp_path, 3))
    assert commands.wait(follow(commands, paths[0])) == 2
    assert "Another process follows" in (tmp_path / "told").read_text()
    assert commands.wait(follow(commands, paths[1], "--idle-timeout", 0.2)) == 0
    os.kill(first, signal.SIGINT)
    assert commands.wait(first) == 0
    assert {row["subject_id"] for row in kept(tmp_path)} == {"a.jsonl", "b.jsonl"}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["closed", "full"])
def test_output_lost_to_a_closed_or_full_stdout_is_printed_later(commands: Commands, tmp_path: Path, kind: str) -> None:
    path = trace(tmp_path / "run.jsonl", 3)
    argv = ("predict", path, "--follow", "--journal", tmp_path / "journal", "--idle-timeout", 0.2, *_QUICK)
    process = commands.start(argv, Path("/dev/full") if kind == "full" else None, tmp_path / "told")
    assert commands.wait(process) == (2 if kind == "full" else 0)
    assert "Traceback" not in (tmp_path / "told").read_text()
    assert ("No space left on device" in (tmp_path / "told").read_text()) == (kind == "full")
    assert commands.wait(follow(commands, path, "--idle-timeout", 0.2)) == 0
    assert len(printed(tmp_path)) == len(kept(tmp_path)) == 6


@pytest.mark.slow
def test_folder_with_unusual_files_is_followed(commands: Commands, tmp_path: Path) -> None:
    folder = tmp_path / "traces"
    (folder / "sub").mkdir(parents=True)
    trace(folder / "a.jsonl", 2)
    trace(folder / "sub" / "no.jsonl", 2)
    (folder / "dangling").symlink_to("nowhere")
    os.mkfifo(folder / "pipe")
    (folder / "odd.txt").write_text("hello\n")
    (folder / "empty").touch()
    process = follow(commands, folder)
    wait_until(lambda: has_printed(tmp_path, 3))
    trace(folder / "b\x1b[31m\n.jsonl", 2)
    trace(Path(os.fsdecode(os.fsencode(folder) + b"/c\xff.jsonl")), 2)
    with (folder / "odd.txt").open("ab") as file:
        file.write(b"".join(flushes(2)))
    wait_until(lambda: has_printed(tmp_path, 9))
    os.kill(process, signal.SIGTERM)
    assert commands.wait(process) == 0
    rows = kept(tmp_path)
    assert {row["subject_id"] for row in rows} == {"a.jsonl", "b\x1b[31m\n.jsonl", "c\\xff.jsonl"}
    assert {row["followed_id"] for row in rows if "xff" in row["subject_id"]} == {f"file://{folder}/c%FF.jsonl"}
    assert len(printed(tmp_path)) == len(rows) == 9
