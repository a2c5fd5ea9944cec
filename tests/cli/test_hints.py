"""Suggested commands work as printed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from iosig.cli.hints import command, for_warehouse, program, runnable
from iosig.cli.table_layout import wrap_text
from tests.nights import Cli, Night

SCRIPTS = Path(sys.prefix) / "bin"
CHECKOUT = Path(sys.prefix).parent
BY_UV = {"PATH": f"{SCRIPTS}:/usr/bin", "UV_RUN_RECURSION_DEPTH": "1"}


@pytest.mark.parametrize(
    ("environment", "folder", "typed"),
    [
        (BY_UV, CHECKOUT, "uv run iosig"),
        (BY_UV, CHECKOUT / "docs", "uv run iosig"),
        (BY_UV, Path("/"), f"uv run --project {CHECKOUT} iosig"),
        (BY_UV | {"PATH": f"{SCRIPTS}:{SCRIPTS}"}, CHECKOUT, "iosig"),
        ({"PATH": str(SCRIPTS)}, CHECKOUT, "iosig"),
        ({"PATH": "/usr/bin"}, CHECKOUT, str(SCRIPTS / "iosig")),
    ],
    ids=["uv run", "below the checkout", "elsewhere", "uv run in an active environment", "active", "by its path"],
)
def test_program_is_spelled_as_the_user_can_type_it(environment: dict[str, str], folder: Path, typed: str) -> None:
    assert program(SCRIPTS / "iosig", environment, folder) == typed


def test_hints_repeat_the_warehouse_of_the_command_line_only(
    cli: Cli, quick_night: Night, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = str(quick_night.store.root)
    _, _, err = cli("--warehouse", root, "sql", "select 1", "--release", "nothing")
    assert f"`iosig --warehouse {root} releases` lists them" in err
    monkeypatch.setenv("IOSIG_WAREHOUSE", root)
    _, _, err = cli("sql", "select 1", "--release", "nothing")
    assert "`iosig releases` lists them" in err


def test_only_quoted_commands_receive_the_warehouse() -> None:
    with for_warehouse("/a b"):
        assert runnable("See `iosig run`, `iosig.toml` and iosig.") == (
            "See `iosig --warehouse '/a b' run`, `iosig.toml` and iosig."
        )
        assert command("run") == "iosig --warehouse '/a b' run"
        with for_warehouse(None):
            assert command("run") == "iosig run"
    assert command("run") == "iosig run"


def test_command_is_never_wrapped() -> None:
    text = "Nothing is there: `iosig --warehouse /a/very/long/path sql 'from rejects'` has the reasons."
    lines = wrap_text(text, 30, keeps_commands=True)
    assert "`iosig --warehouse /a/very/long/path sql 'from rejects'`" in lines
    assert " ".join(lines) == text


@pytest.mark.slow
def test_printed_command_runs_in_a_shell(quick_night: Night, tmp_path: Path) -> None:
    """As a person would: the hint of a mistake is pasted into a shell of the same environment."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("UV_RUN", "IOSIG"))}
    environment["PATH"] = "/usr/bin:/bin"
    asked = [str(SCRIPTS / "iosig"), "--warehouse", str(quick_night.store.root), "sql", "x", "--release", "nothing"]
    first = subprocess.run(asked, env=environment, cwd=tmp_path, capture_output=True, text=True)
    hint = re.search(r"`([^`]+)`", first.stderr)
    assert hint is not None, first.stderr
    second = subprocess.run(hint[1], shell=True, env=environment, cwd=tmp_path, capture_output=True, text=True)
    assert (second.returncode, second.stderr) == (0, "")
    assert quick_night.release.release_id in second.stdout
