"""The commands of docs/first-night.md work in order on a real day, and print the output that the page shows."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs" / "first-night.md").read_text(encoding="utf-8")
pytestmark = pytest.mark.slow


def run_command(line: str, folder: Path) -> str:
    """Run a line of the page in a folder that replaces `/data`; return its output."""
    program = f"{sys.executable} -c 'from iosig.cli import program; program()'"
    environment = os.environ | {"IOSIG_WAREHOUSE": str(folder / "iosig"), "PYTHONPATH": str(ROOT)}
    command = line.replace("uv run iosig", program)
    done = subprocess.run(
        command, shell=True, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
    return done.stdout + done.stderr


def test_documented_commands_print_the_documented_output(shared_data: Path, tmp_path: Path) -> None:
    shutil.copy(shared_data / "jobs" / "edison-2018-02-09.sacct", tmp_path / "sacct_2018-02-09.txt")
    shutil.copy(shared_data / "lmt" / "edison-snx11025_2018-02-09.h5lmt", tmp_path)
    printed = shown = ""
    for language, block in re.findall(r"```(\w+)\n(.*?)```", PAGE, re.DOTALL):
        if language == "toml":
            (tmp_path / "iosig" / "iosig.toml").write_text(block, encoding="utf-8")
            printed += run_command("uv run iosig run", tmp_path)
        elif language == "text":
            shown += block
        else:
            lines = [line for line in block.splitlines() if line and "export IOSIG" not in line and "serve" not in line]
            printed += "".join(run_command(line, tmp_path) for line in lines)

    words = " ".join(printed.split())
    assert shown
    assert [line for line in shown.splitlines() if " ".join(line.split()) not in words] == []
    assert (tmp_path / "pages" / "index.html").is_file()
