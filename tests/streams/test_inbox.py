"""A watched folder lands complete files only, and a killed watcher neither loses nor duplicates files."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from iosig.settings.model import Settings
from iosig.streams.inbox import Inbox, follow
from iosig.streams.landing import Arrival, ReadOptions, land_paths
from iosig.warehouse.errors import InputRefused
from iosig.warehouse.interrupts import Stop
from iosig.warehouse.store import landing
from iosig.warehouse.store.store import Store
from tests.nights import Cli, land_files

HEAD = "JobID|User|JobName|Partition|NNodes|Start|End|State\n"


def job_line(number: int) -> str:
    return f"{number}|ann|ior|batch|8|2026-03-03T10:00:00Z|2026-03-03T10:20:00Z|COMPLETED\n"


@dataclass
class Clock:
    """A fake clock for file times and elapsed time."""

    now_s: float = 1e9
    passed_s: float = 0.0

    def __call__(self) -> tuple[float, float]:
        return self.now_s, self.passed_s

    def pass_by(self, seconds: float) -> None:
        self.now_s += seconds
        self.passed_s += seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def inbox(tmp_path: Path, clock: Clock) -> Inbox:
    (tmp_path / "inbox").mkdir()
    return Inbox(tmp_path / "inbox", settle_s=60.0, now=clock)


def write(path: Path, clock: Clock, content: str = HEAD, age_s: float = 0.0) -> Path:
    path.write_text(content)
    os.utime(path, (clock.now_s - age_s,) * 2)
    return path


def names(inbox: Inbox) -> list[str]:
    return [path.name for path in inbox.whole()[0]]


def test_changing_file_waits_until_it_has_settled(inbox: Inbox, clock: Clock) -> None:
    path = write(inbox.folder / "jobs", clock)
    for _ in range(5):
        assert names(inbox) == []
        clock.pass_by(50)
        write(path, clock, path.read_text() + "more\n")
    assert names(inbox) == []
    clock.pass_by(61)
    assert names(inbox) == ["jobs"]
    assert inbox.mark_processed(path)
    assert names(inbox) == []
    write(path, clock, "anew\n")
    clock.pass_by(61)
    assert names(inbox) == []
    clock.pass_by(61)
    assert names(inbox) == ["jobs"]


def test_renamed_file_waits_for_one_more_scan(inbox: Inbox, clock: Clock) -> None:
    write(inbox.folder / "jobs.part", clock, age_s=1000)
    assert names(inbox) == []
    clock.pass_by(5)
    (inbox.folder / "jobs.part").rename(inbox.folder / "jobs")
    assert names(inbox) == []
    clock.pass_by(5)
    assert names(inbox) == ["jobs"]


@pytest.mark.parametrize("ahead_s", [-1e6, 1e6])
def test_clock_skew_delays_landing_only_briefly(inbox: Inbox, clock: Clock, ahead_s: float) -> None:
    write(inbox.folder / "jobs", clock, age_s=-ahead_s)
    assert names(inbox) == []
    clock.pass_by(61)
    assert names(inbox) == ["jobs"]


def test_completion_marker_allows_landing_and_is_not_an_input(inbox: Inbox, clock: Clock) -> None:
    write(inbox.folder / "jobs", clock)
    write(inbox.folder / "jobs.done", clock, "")
    write(inbox.folder / "other", clock, age_s=1000)
    write(inbox.folder / ".hidden", clock, age_s=1000)
    inbox.requires_marker = True
    assert names(inbox) == ["jobs"]
    clock.pass_by(1000)
    assert names(inbox) == ["jobs"]
    inbox.requires_marker = False
    assert names(inbox) == ["jobs", "other"]


def test_completion_markers_are_not_landed_by_path(tmp_path: Path) -> None:
    (tmp_path / "inbox").mkdir()
    (tmp_path / "inbox" / "jobs").write_text(HEAD + job_line(1))
    (tmp_path / "inbox" / "jobs.done").write_text("")
    found = [*land_paths(Store(tmp_path / "w"), Settings(), [str(tmp_path / "inbox")], ReadOptions())]
    assert [Path(arrival.name).name for arrival in found] == ["jobs"]


def test_refused_input_is_reported_once_per_change(inbox: Inbox, tmp_path: Path) -> None:
    (inbox.folder / "jobs").write_text(HEAD + job_line(1))
    (inbox.folder / "noise").write_bytes(b"\x00\xff" * 100)
    inbox.settle_s, inbox.now = 0.0, lambda: (time.time(), time.monotonic())
    stop, told = Stop(), []

    def watched() -> Iterator[Arrival]:
        return follow(Store(tmp_path / "w"), Settings(), [inbox], ReadOptions(), stop, interval_s=0.01)

    for arrival in watched():
        told.append((Path(arrival.name).name, arrival.refusal is None))
        if len(told) == 2:
            (inbox.folder / "noise").write_text(HEAD + job_line(2))
        if len(told) == 3:
            stop.set()
    assert told == [("jobs", True), ("noise", False), ("noise", True)]


def test_additional_sources_report_only_new_refusals(tmp_path: Path) -> None:
    stop, down = Stop(), InputRefused("It is down.", "Start it.")
    answers = iter([down, down, None, down, InputRefused("It is full.", "Empty it.")])

    def asked() -> Iterator[Arrival]:
        refusal = next(answers, stop)
        if isinstance(refusal, Stop):
            stop.set()
            return
        yield Arrival("server", None, refusal)

    found = follow(Store(tmp_path / "w"), Settings(), [], ReadOptions(), stop, asked, interval_s=0.0)
    told = [arrival.refusal and arrival.refusal.reason for arrival in found]
    assert told == ["It is down.", "It is down.", "It is full."]


def test_signal_ends_the_follow_command_cleanly(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "inbox").mkdir()
    (tmp_path / "inbox" / "jobs").write_text(HEAD + job_line(1))
    ours = ("--warehouse", tmp_path / "w", "land", tmp_path / "inbox", "--follow")
    assert cli(*ours, "--replace")[0] == 2
    assert cli("land", "--require-marker", tmp_path / "inbox")[0] == 2
    signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), signal.SIGTERM))
    signal.setitimer(signal.ITIMER_REAL, 1.0)
    code, _, err = cli(*ours, "--settle", "0", "--interval", "0.05")
    assert code == 0
    assert "landed 1 rows" in err
    assert len(landing.ledger(Store(tmp_path / "w"))) == 1


@pytest.mark.slow
def test_killed_watcher_neither_loses_nor_duplicates_files(tmp_path: Path) -> None:
    folder, chance = tmp_path / "inbox", random.Random(23)
    folder.mkdir()
    command = [sys.executable, "-c", "from iosig.cli import main; main()", "--warehouse", str(tmp_path / "w")]
    command += ["land", "--follow", "--settle", "0.2", "--interval", "0.02", str(folder)]
    written, landed = 0, tmp_path / "w" / "landed"
    for _ in range(5):
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        for _ in range(chance.randrange(3, 8)):
            with (folder / f"{written:03}").open("w") as file:
                file.write(HEAD)
                file.flush()
                time.sleep(chance.uniform(0, 0.05))
                file.write(job_line(written))
            written += 1
            time.sleep(chance.uniform(0, 0.1))
        before, deadline_s = len([*landed.glob("*/landing.json")]), time.monotonic() + 60
        while len([*landed.glob("*/landing.json")]) == before:
            assert time.monotonic() < deadline_s
            time.sleep(0.01)
        time.sleep(chance.uniform(0, 0.1))
        process.send_signal(signal.SIGKILL)
        process.wait()
    store = Store(tmp_path / "w")
    land_files(store, folder)
    landings = landing.ledger(store)
    assert sorted(one.source_file for one in landings) == [f"{number:03}" for number in range(written)]
    assert [one.row_count() for one in landings] == [1] * written
