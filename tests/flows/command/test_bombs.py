"""Bombs: each is refused, or landed for what is good of it, under 500 MB and 30 s; `pytest -rP` prints a table."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.flows.command.bombs import BOMBS, Bomb

pytestmark = pytest.mark.long

_MOST_BYTES, _LONGEST_S = 500 * 10**6, 30.0


def measured(*arguments: object) -> tuple[int, str, int, float]:
    """Run the command; return its exit code, what it printed on stderr, the most memory that it had, and its time."""
    command = [sys.executable, "-c", "from flows.command import main; main()", *map(str, arguments)]
    began = time.monotonic()
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
    assert process.stderr is not None
    said = process.stderr.read().decode("utf-8", "replace")
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    # who has the machine for itself waits no longer than that
    took_s = min(time.monotonic() - began, usage.ru_utime + usage.ru_stime)
    return process.returncode, said, usage.ru_maxrss * 1024, took_s


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_takes_no_more_than_its_share(name: str, tmp_path: Path) -> None:
    bomb: Bomb = BOMBS[name]
    bomb(tmp_path / "input")
    code, said, memory, took_s = measured("--warehouse", tmp_path / "w", "land", tmp_path / "input")
    size = (tmp_path / "input").stat().st_size
    lines = said.splitlines() or [""]
    print(f"| {name} | {size / 1e6:.1f} MB | {code} | {memory / 1e6:.0f} MB | {took_s:.1f} s | {lines[-1][-150:]} |")
    assert code in (0, 3), said
    assert "Traceback" not in said
    assert memory < _MOST_BYTES
    assert took_s < _LONGEST_S
