"""The report is built by its command and after a night, reuses pages, and never blocks the release."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from iosig.answers.report import build
from iosig.answers.report.writing import WriteSummary
from iosig.flows.report import after_release
from iosig.settings.model import Settings
from iosig.warehouse.releases import expiring
from iosig.warehouse.releases.releases import Release
from iosig.warehouse.store.store import Store
from tests.flows.signature_releases import Made, publish
from tests.nights import Cli

_RELEASE = cast(Release, SimpleNamespace(release_id="r1"))


def settings_with(into: Path, **more: object) -> Settings:
    return Settings.model_validate({"report": {"output": str(into), **more}})


def test_report_without_configured_folder_is_not_written(tmp_path: Path) -> None:
    assert after_release(Store(tmp_path), Settings(), _RELEASE) is None


def test_failed_report_is_reported_and_not_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> WriteSummary:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(build, "report", fail)
    told = after_release(Store(tmp_path), settings_with(tmp_path / "pages"), _RELEASE)
    assert told == ("report: not written; the release is not affected: ZeroDivisionError: a bug", 0)


def test_settings_control_whether_users_are_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Any] = []

    def keep(_: Store, __: Release, folder: Path, ___: object, hider: object, ____: Settings) -> WriteSummary:
        given.append((folder, hider is not None))
        return WriteSummary(folder / "latest/index.html", 3, 9, 2, ())

    monkeypatch.setattr(build, "report", keep)
    for is_hidden in (False, True):
        told = after_release(Store(tmp_path), settings_with(tmp_path / "pages", hide_users=is_hidden), _RELEASE)
        assert told == (f"report {tmp_path / 'pages/latest/index.html'}", 2)
    assert given == [(tmp_path / "pages", False), (tmp_path / "pages", True)]


@pytest.mark.slow
def test_command_writes_pages_and_removes_pages_of_expired_releases(cli: Cli, tmp_path: Path) -> None:
    store, into = Store(tmp_path / "warehouse"), tmp_path / "pages"
    for name in ("first", "second"):
        publish(store, name, [Made(), Made("zoe/x/8", bursts=((1, 9, 1e9),))])
        code, printed, _ = cli("--warehouse", store.root, "report", "--output", into, "--json", "--hide-users")
        assert code == 0
    told = json.loads(printed)
    assert told["release_id"] == "2018-02-09-second"
    # only release ids differ, and the history of applications in both
    assert 0 < told["new_count"] < told["file_count"] / 1.5
    assert "zoe" not in "".join(path.read_text() for path in into.rglob("*.html"))
    expiring.expire(store, 1)
    code, printed, _ = cli("--warehouse", store.root, "report", "--output", into, "--hide-users")
    assert "2018-02-09-first: pages deleted" in printed
    assert sorted(path.name for path in into.iterdir() if path.is_dir()) == ["2018-02-09-second", "latest"]
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/thesis.tex").write_text("")
    code, _, said = cli("--warehouse", store.root, "report", "--output", tmp_path / "mine")
    assert code == 2
    assert "has other content than a report" in said
