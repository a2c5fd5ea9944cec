"""`iosig --version` names the commit if the installation records it."""

from __future__ import annotations

import json
import subprocess
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from iosig.cli.main import describe_version, iosig

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def describe(monkeypatch: pytest.MonkeyPatch, origin: object) -> str:
    text = None if origin is None else json.dumps(origin)
    monkeypatch.setattr(
        metadata, "distribution", lambda _: SimpleNamespace(version="0.1.0", read_text=lambda name: text)
    )
    return describe_version()


def test_commit_of_a_repository_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    origin = {"url": "https://example.org/iosig.git", "vcs_info": {"vcs": "git", "commit_id": COMMIT}}
    assert describe(monkeypatch, origin) == "0.1.0 (commit 0123456789ab)"


@pytest.mark.parametrize("origin", [None, {"url": "file:///wheels/iosig.whl", "archive_info": {}}])
def test_wheel_has_no_commit(monkeypatch: pytest.MonkeyPatch, origin: object) -> None:
    assert describe(monkeypatch, origin) == "0.1.0"


def test_commit_of_a_checkout_is_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    place = tmp_path / "a checkout"
    origin = {"url": place.as_uri(), "dir_info": {"editable": True}}
    assert describe(monkeypatch, origin) == "0.1.0"
    git = ["git", "-C", str(place), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run(["git", "init", "--quiet", str(place)], check=True)
    subprocess.run([*git, "commit", "--quiet", "--allow-empty", "--message=first"], check=True)
    commit = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()
    assert describe(monkeypatch, origin) == f"0.1.0 (commit {commit[:12]})"
    (place / "file").touch()
    subprocess.run([*git, "add", "file"], check=True)
    assert describe(monkeypatch, origin) == f"0.1.0 (commit {commit[:12]}-dirty)"


def test_command_prints_it() -> None:
    result = CliRunner().invoke(iosig, ["--version"])
    assert (result.exit_code, result.output) == (0, f"iosig, version {describe_version()}\n")
    assert metadata.version("iosig") in result.output
