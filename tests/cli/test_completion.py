"""Shell completion is quick and leaves no files behind."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.shell_completion import BashComplete

from iosig.cli.main import iosig
from tests.nights import Cli, Night


def completed(*words: str, begun: str = "") -> list[str]:
    return [item.value for item in BashComplete(iosig, {}, "iosig", "_IOSIG_COMPLETE").get_completions([*words], begun)]


def files(root: Path) -> dict[Path, int]:
    return {path: path.lstat().st_mtime_ns for path in root.rglob("*")}


def test_names_from_a_warehouse_are_completed(quick_night: Night) -> None:
    root, release_id = str(quick_night.store.root), quick_night.release.release_id
    before = files(quick_night.store.root)
    of = ("--warehouse", root)
    assert completed(*of, "export", begun="signature_") == ["signature_bursts", "signature_checks", "signature_points"]
    assert completed(*of, "sql", "--release", begun="20") == [release_id]
    assert completed(*of, "diff", release_id, begun="20") == [release_id]
    assert completed(*of, "advise", begun="s3d") == ["ann/s3d/8"]
    assert completed(*of, "plot", "signature", begun="") == ["ann/ior/8", "ann/s3d/8"]
    assert completed(*of, "advise", "--user", begun="a") == ["ann"]
    assert completed(*of, "who", begun="") == ["default"]
    assert files(quick_night.store.root) == before


def test_commands_and_options_are_completed() -> None:
    assert completed(begun="rel") == ["releases"]
    assert "--wide" in completed("status", begun="--")
    assert completed("period", "--method", begun="ft") == ["ftio", "ftio-wavelet"]


@pytest.mark.parametrize("root", ["nowhere", "s3://bucket/prefix"])
def test_unreadable_warehouse_completes_nothing(root: str, tmp_path: Path) -> None:
    of = ("--warehouse", root if "://" in root else str(tmp_path / root))
    assert completed(*of, "sql", "--release") == completed(*of, "advise") == completed(*of, "who") == []
    (tmp_path / "release_index").mkdir()
    (tmp_path / "release_index" / "torn.json").write_text("{")
    assert completed("--warehouse", str(tmp_path), "rollback") == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_script_is_generated_for_each_shell(shell: str, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_IOSIG_COMPLETE", f"{shell}_source")
    code, out, _ = cli()
    assert (code, "_IOSIG_COMPLETE" in out) == (0, True)
