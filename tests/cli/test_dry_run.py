"""`iosig run --dry-run` shows the days and steps that a run would compute, with reasons, without writing anything."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from iosig.warehouse.store.store import Store
from tests.nights import Cli, Night


def plan(cli: Cli, store: Store, *options: str) -> dict[str, object]:
    code, out, _ = cli("--warehouse", store.root, "run", "--dry-run", "--json", *options)
    assert code == 0
    document: dict[str, object] = json.loads(out)
    return document


def content(store: Store) -> set[tuple[str, int]]:
    return {
        (str(Path(folder, name).relative_to(store.root)), Path(folder, name).stat().st_mtime_ns)
        for folder, _, names in os.walk(store.root)
        for name in names
    }


def test_first_run_computes_all_landed_days(cli: Cli, site: Store) -> None:
    before = content(site)
    document = plan(cli, site)
    assert content(site) == before, "nothing is written"
    assert document["reasons"] == ["no release exists yet"]
    assert document["days"] == ["2026-03-02", "2026-03-03"]
    steps = {step["step"]: step for step in document["steps"]}  # type: ignore[attr-defined]
    assert steps["stage polls"]["item_count"] == 2
    assert steps["stage jobs"]["item_count"] == 1
    assert steps["attribution limits"]["days"] is None, "tables of the run decide"
    code, out, _ = cli("--warehouse", site.root, "run", "--dry-run")
    assert code == 0
    assert "A run would compute 2026-03-02 to 2026-03-03 (2 days): no release exists yet." in out
    assert "stage polls" in out


@pytest.mark.parametrize(
    ("settings", "options", "reasons"),
    [
        ("[classes]\nmin_duration_s = 7200\n", (), ["settings changed: classes.min_duration_s"]),
        ("", ("--date", "2026-03-03"), ["requested days: 2026-03-03 to 2026-03-03"]),
    ],
)
def test_reasons_name_changed_settings_and_requested_days(
    settings: str, options: tuple[str, ...], reasons: list[str], cli: Cli, quick_night: Night, tmp_path: Path
) -> None:
    store = quick_night.copy(tmp_path / "warehouse")
    (store.root / "iosig.toml").write_text(settings)
    document = plan(cli, store, *options)
    assert document["reasons"] == reasons
    steps = {step["step"]: step for step in document["steps"]}  # type: ignore[attr-defined]
    assert steps["stage polls"]["expected_s"] > 0, "the last run measured it"


def test_nothing_new_is_not_a_failure(cli: Cli, quick_night: Night) -> None:
    code, _, err = cli("--warehouse", quick_night.store.root, "run", "--dry-run")
    assert code == 0
    assert "Nothing new since release" in err
