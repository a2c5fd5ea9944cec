"""Pages of `docs/` that programs rely on: their tables of fields, their code, their hooks for Slurm."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[1] / "docs"
_LUA = next((found for name in ("lua5.4", "lua5.3", "lua") if (found := shutil.which(name))), None)
needs_lua = pytest.mark.skipif(_LUA is None, reason="there is no Lua on this machine")


def tables_of(page: Path) -> dict[str, list[list[str]]]:
    """Return the rows of a page's tables of fields, by the heading above."""
    found: dict[str, list[list[str]]] = {}
    for heading, section in re.findall(r"^##+ (.+?)\n(.*?)(?=^##|\Z)", page.read_text("utf-8"), re.M | re.S):
        if lines := re.findall(r"^\| `.*", section, re.M):
            found[heading] = [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in lines]
    return found


def code_of(page: Path, language: str) -> list[str]:
    """Return the page's blocks of code in a language."""
    return re.findall(rf"```{language}\n(.*?)```", page.read_text("utf-8"), re.S)


def run_hook(
    page: Path, table: tuple[str, Sequence[Sequence[str]]], slurm: str, calls: list[str], at: Path
) -> list[str]:
    """Run the page's `job_submit.lua` in a folder, and return what the calls print.

    table: the path that the script reads, and the rows that are there. slurm: what slurmctld gives a script.
    """
    assert _LUA is not None
    (script,) = code_of(page, "lua")
    path, rows = table
    name = Path(path).name
    (at / name).write_text("".join("\t".join(row) + "\n" for row in rows))
    (at / "job_submit.lua").write_text(script.replace(path, name))
    (at / "calls.lua").write_text(slurm + "\n".join(calls))
    ran = subprocess.run([_LUA, "calls.lua"], cwd=at, capture_output=True, text=True, check=True)
    return ran.stdout.splitlines()
