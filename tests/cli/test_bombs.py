"""Each bomb is refused or its valid part lands, below 500 MB and 30 s; `pytest -rP` prints a table."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.bombs import BOMBS

#: bombs that once caused a failure
_OFTEN = ("polls, all refused, gzip", "Parquet, 30 million times one poll")
_MOST_BYTES, _LONGEST_S = 500 * 10**6, 30.0

#: starts a command and reports its usage from a small process: a child of a large process would inherit its peak
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
    """Run the command; return its exit code, standard error, peak memory and time.

    The time is CPU time where the machine is shared.
    """
    command = [sys.executable, "-c", "from iosig.cli import main; main()", *map(str, arguments)]
    done = subprocess.run(
        [sys.executable, "-c", _MEASURING, *command], capture_output=True, check=True, preexec_fn=_limit
    )
    code, said, memory, took_s = json.loads(done.stdout)
    return code, said, memory, took_s


def _limit() -> None:
    # limits the damage to the machine if a bomb succeeds
    resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name in _OFTEN else pytest.mark.long) for name in BOMBS]
)
def test_bomb_stays_within_memory_and_time_limits(name: str, tmp_path: Path) -> None:
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
