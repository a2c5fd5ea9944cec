"""Test child processes: no process that a command started is alive after its timeout."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from iosig.warehouse.external.processes import end_group, run


@pytest.fixture
def stubborn(tmp_path: Path) -> Iterator[Path]:
    """Create a command that, like its grandchild, ignores SIGTERM; both record their process ids."""
    command = tmp_path / "stubborn"
    command.write_text(
        f"#!{sys.executable}\n"
        "import os, signal, sys, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "os.fork()\n"
        f"open(f'{tmp_path}/pid-{{os.getpid()}}', 'w').close()\n"
        "time.sleep(60)\n"
    )
    command.chmod(0o755)
    yield command
    for pid in _pids(tmp_path):
        if _is_alive(pid):
            os.kill(pid, signal.SIGKILL)


def _pids(folder: Path) -> list[int]:
    return [int(path.name.removeprefix("pid-")) for path in folder.glob("pid-*")]


def _is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def _wait_for(count: int, folder: Path) -> list[int]:
    deadline = time.monotonic() + 20
    while len(pids := _pids(folder)) < count:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return pids


def test_timeout_ends_command_and_grandchildren(tmp_path: Path, stubborn: Path) -> None:
    begun_s = time.monotonic()
    with pytest.raises(subprocess.TimeoutExpired):
        run([str(stubborn)], timeout_s=2, grace_s=0.2)
    assert time.monotonic() - begun_s < 20
    assert len(_pids(tmp_path)) == 2
    assert not [pid for pid in _pids(tmp_path) if _is_alive(pid)]


def test_grandchildren_are_ended_after_leader_has_exited(tmp_path: Path, stubborn: Path) -> None:
    process = subprocess.Popen([str(stubborn)], start_new_session=True)
    pids = _wait_for(2, tmp_path)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    end_group(process, 0.2)
    assert not [pid for pid in pids if _is_alive(pid)]


def test_sigterm_is_sent_first(tmp_path: Path) -> None:
    script = f"trap 'echo ended > {tmp_path}/said; exit 0' TERM; touch {tmp_path}/pid-0; while :; do sleep 0.05; done"
    process = subprocess.Popen(["bash", "-c", script], start_new_session=True)
    _wait_for(1, tmp_path)
    end_group(process, 20)
    assert (tmp_path / "said").read_text() == "ended\n"


def test_grandchild_with_open_output_does_not_delay_the_result(tmp_path: Path) -> None:
    script = f"sleep 30 & echo $! > {tmp_path}/left; cat; echo bad >&2; exit 3"
    begun_s = time.monotonic()
    with (tmp_path / "answer").open("wb") as file:
        completed = run(["bash", "-c", script], timeout_s=20, content=b"question", stdout=file)
    assert time.monotonic() - begun_s < 15
    os.kill(int((tmp_path / "left").read_text()), signal.SIGKILL)
    assert (completed.returncode, completed.stderr) == (3, b"bad\n")
    assert (tmp_path / "answer").read_bytes() == b"question"
