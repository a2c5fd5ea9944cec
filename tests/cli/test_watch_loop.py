"""`iosig status --watch` fits the screen at any width, survives faults, and exits cleanly."""

from __future__ import annotations

import io
import os
import pty
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest
from rich.cells import cell_len
from rich.console import Console

from iosig.answers.attribution.query import Answer, Query
from iosig.answers.moment.bursts import Burst
from iosig.answers.moment.query import MINUTES, FilesystemMoment, Moment, Outlook
from iosig.answers.status.problems import Problem
from iosig.cli.live_screen import Screen
from iosig.cli.watch_loop import waiting, watch_on_screen
from iosig.warehouse.errors import NothingToDo
from iosig.warehouse.interrupts import Stop
from iosig.warehouse.store.store import Store
from tests.answers.status.conditions import WELL, but
from tests.nights import Cli, Night

_POLLED = datetime(2026, 3, 4, 11, 59, 30, tzinfo=UTC)
_NOW = _POLLED + timedelta(seconds=31)
#: a name with markup and terminal control characters
_HOSTILE = "[bold red]eve[/]\x1b[2J/ior/8"


def who() -> Answer:
    since = _POLLED.replace(second=0) - timedelta(minutes=10)
    job = {
        "cluster": "titan", "job_id": "4000539", "started_at": since, "user": "eve", "application_id": _HOSTILE,
        "attributed_bytes": 4.29e11, "confidence": 0.6, "fit": "fair",
    }  # fmt: skip
    jobs = pl.DataFrame([job] * 7)
    minutes = pl.DataFrame({"direction": ["write"], "minute_at": [since], "measured_bytes": [5e12]})
    parts = pl.DataFrame({"direction": ["write"], "minute_at": [since], "attributed_bytes": [3e12]})
    return Answer(Query("lake", since, None), _POLLED, jobs, jobs, jobs, minutes, parts, jobs.head(2))


def moment(**changes: object) -> Moment:
    rates = tuple(None if minute < 3 else float(minute) * 1e9 for minute in range(MINUTES))
    burst = Burst("4000539", _HOSTILE, _POLLED, _POLLED, _NOW, 1e9, "prediction")
    told: dict[str, object] = {
        "filesystem": "lake", "polled_at": _POLLED, "bytes_per_s": {"read": (None,) * MINUTES, "write": rates},
        "recent": who(), "bursts": (burst,) * 7, "outlook": Outlook(600.0, (1e9,) * 6, (1e8,) * 6, (2e9,) * 6),
        "no_outlook_reason": None,
    }  # fmt: skip
    return Moment(WELL, (), (FilesystemMoment(**(told | changes)),))  # type: ignore[arg-type]


def printed(shown: Screen, width: int) -> list[str]:
    console = Console(file=io.StringIO(), width=width, force_terminal=True, color_system=None)
    with console.capture() as captured:
        console.print(shown)
    return captured.get().splitlines()


@pytest.mark.parametrize("width", [80, 120])
def test_screen_fits_and_shows_traffic_jobs_and_bursts(width: int) -> None:
    lines = printed(Screen(moment(), lambda: _NOW), width)
    text = "\n".join(lines)
    assert max(map(cell_len, lines)) <= width
    for part in (
        *("lake, polls to 11:59:30Z, 31 s ago", "59 GB/s", "1 h: 100 MB/s to 2 GB/s", "unattributed", "2 TB", "40.0%"),
        *(
            "[bold re",
            "J/ior/8",
            "conf. 0.60",
            "±16 s",
            "2 more jobs moved some",
            "other jobs without attributed bytes: 2",
        ),
        "2 more",
    ):
        assert part in text, part
    assert "\x1b" not in text
    write, read = (next(line for line in lines if line.startswith(name)) for name in ("write", "read"))
    assert write.count("·") == 3
    assert "█" in write
    assert "not polled" in read


def test_narrow_screen_shows_half_of_the_curve() -> None:
    lines = printed(Screen(moment(), lambda: _NOW), 60)
    assert max(map(cell_len, lines)) <= 60
    assert sum(letter in "▁▂▃▄▅▆▇█·" for letter in next(line for line in lines if line.startswith("write"))) == 30


def test_missing_values_are_explained() -> None:
    lacking = moment(recent=None, bursts=(), outlook=None, no_outlook_reason="There is no release yet.")
    text = "\n".join(printed(Screen(lacking, lambda: _NOW), 80))
    for part in ("No polls in the last 10 minutes", "none known", "There is no release yet."):
        assert part in text
    nothing = Moment(but(release_id=None, sources=()), (Problem("gate", "Look \x1b[2J."),), ())
    text = "\n".join(printed(Screen(nothing, lambda: _NOW), 80))
    for part in ("no release yet", "! Look \N{REPLACEMENT CHARACTER}[2J.", "No polls have landed"):
        assert part in text


def test_screen_refreshes_until_stopped_and_keeps_content_after_a_fault() -> None:
    """The clock is fixed, and the test does not sleep."""
    out, looked = io.StringIO(), list[datetime]()

    def look(at: datetime) -> Moment:
        looked.append(at)
        if len(looked) == 2:
            raise NothingToDo("The warehouse is being moved.")
        return moment()

    waits = iter([False, False, True])
    console = Console(file=out, width=80, height=60, force_terminal=True, color_system=None)
    watch_on_screen(look, console, lambda _: next(waits), 30.0, lambda: _NOW)
    assert looked == [_NOW] * 3
    assert "! The warehouse is being moved." in out.getvalue()
    assert out.getvalue().count("\x1b[?1049l") == 1, "the screen before is there again"


def test_wait_ends_when_a_signal_arrives() -> None:
    stop = Stop()
    with waiting(stop) as wait:
        assert not wait(0.0)
        stop.set()
        assert wait(60.0)


@pytest.mark.slow
def test_pipe_gets_one_plain_screen_and_conflicting_options_are_refused(cli: Cli, quick_night: Night) -> None:
    asked = ("--warehouse", quick_night.store.root, "status")
    code, out, err = cli(*asked, "--watch")
    assert (code, err) == (0, "")
    assert f"release {quick_night.release.release_id}" in out
    assert "polls to 2026-03-03 02:00:00Z" in out
    assert "\x1b" not in out
    assert max(map(cell_len, out.splitlines())) <= 80
    for more, said in (
        (("--interval", 5), "--interval needs"),
        (("--watch", "--notify"), "--watch cannot be combined with --format or --notify"),
    ):
        code, _, err = cli(*asked, *more)
        assert code == 2
        assert said in err


def run_in_terminal(store: Store, environment: dict[str, str], leave: bytes | None) -> tuple[int, str]:
    """Watch on a terminal; quit with a key, or with Ctrl-C; return the exit code and the output."""
    ours, theirs = pty.openpty()
    program = "from iosig.cli import main; main()"
    arguments = [sys.executable, "-c", program, "--warehouse", str(store.root), "status", "--watch"]
    with subprocess.Popen(
        arguments, stdin=theirs, stdout=theirs, stderr=theirs, env=os.environ | environment, start_new_session=True
    ) as process:
        os.close(theirs)
        seen = b""
        deadline = time.monotonic() + 120
        while b"Landed" not in seen and process.poll() is None and time.monotonic() < deadline:
            seen += os.read(ours, 65536)
        if leave is not None:
            os.write(ours, leave)
        elif process.poll() is None and environment["TERM"] != "dumb":
            process.send_signal(signal.SIGINT)
        try:
            while chunk := os.read(ours, 65536):
                seen += chunk
        except OSError:
            # the terminal's other end is closed
            pass
        os.close(ours)
        return process.wait(60), seen.decode(errors="replace")


@pytest.mark.long
@pytest.mark.parametrize(
    ("environment", "leave", "is_live", "has_colors"),
    [
        ({"TERM": "xterm-256color"}, b"q", True, True),
        ({"TERM": "xterm-256color"}, None, True, True),
        ({"TERM": "xterm-256color", "NO_COLOR": "1"}, b"q", True, False),
        ({"TERM": "dumb"}, None, False, False),
    ],
)
def test_quitting_on_a_terminal_exits_with_0(
    quick_night: Night, environment: dict[str, str], leave: bytes | None, *, is_live: bool, has_colors: bool
) -> None:
    code, seen = run_in_terminal(quick_night.store, environment, leave)
    assert code == 0
    assert ("\x1b[?1049h" in seen, "\x1b[?1049l" in seen) == (is_live, is_live)
    assert ("\x1b[36m" in seen) == has_colors
    assert quick_night.release.release_id in seen
    if not is_live:
        assert "\x1b" not in seen


@pytest.mark.long
def test_json_prints_a_line_per_refresh(quick_night: Night, tmp_path: Path) -> None:
    from tests.documents import require_schema

    program = "from iosig.cli import main; main()"
    arguments = [sys.executable, "-c", program, "--warehouse", str(quick_night.store.root), "status", "--watch"]
    with subprocess.Popen([*arguments, "--interval", "1", "--json"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(2)]
        process.send_signal(signal.SIGTERM)
        rest = process.stdout.read()
        assert process.wait(60) == 0
    assert require_schema("".join(lines) + rest)[:2] == ["iosig-live/1"] * 2
