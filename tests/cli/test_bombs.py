"""Bombs: each is refused, or landed for what is good of it, under 500 MB and 30 s; `pytest -rP` prints a table."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.bombs import BOMBS

#: bombs that went off once unnoticed
_OFTEN = ("polls, all refused, gzip", "Parquet, 30 million times one poll")
_MOST_BYTES, _LONGEST_S = 500 * 10**6, 30.0

#: starts a command and says what it took: of a process that was large before, its child would say the same
_MEASURING = """
import json, os, subprocess, sys, time
began = time.monotonic()
process = subprocess.Popen(sys.argv[1:], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
said = process.stderr.read().decode("utf-8", "replace")
_, status, usage = os.wait4(process.pid, 0)
took_s = min(time.monotonic() - began, usage.ru_utime + usage.ru_stime)
print(json.dumps([os.waitstatus_to_exitcode(status), said, usage.ru_maxrss * 1024, took_s]))
"""


def measured(*arguments: object) -> tuple[int, str, int, float]:
    """Run the command; return its exit code, what it printed on stderr, the most memory that it had, and its time.

    The time is that of the processor where the machine is shared.
    """
    command = [sys.executable, "-c", "from iosig.cli import main; main()", *map(str, arguments)]
    done = subprocess.run(
        [sys.executable, "-c", _MEASURING, *command], capture_output=True, check=True, preexec_fn=_limit
    )
    code, said, memory, took_s = json.loads(done.stdout)
    return code, said, memory, took_s


def _limit() -> None:
    # a bomb that goes off is not to take the machine with it
    resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name in _OFTEN else pytest.mark.long) for name in BOMBS]
)
def test_a_bomb_takes_no_more_than_its_share(name: str, tmp_path: Path) -> None:
    bomb, *how = BOMBS[name]
    bomb(tmp_path / "input")
    code, said, memory, took_s = measured("--warehouse", tmp_path / "w", "land", tmp_path / "input", *how)
    size = (tmp_path / "input").stat().st_size
    lines = said.splitlines() or [""]
    print(f"| {name} | {size / 1e6:.1f} MB | {code} | {memory / 1e6:.0f} MB | {took_s:.1f} s | {lines[-1][-150:]} |")
    assert code in (0, 3), said
    assert "Traceback" not in said
    assert memory < _MOST_BYTES
    assert took_s < _LONGEST_S
