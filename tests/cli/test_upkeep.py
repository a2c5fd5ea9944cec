"""`iosig maintain` applies the retention settings and reports removals."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import pytest

from iosig.warehouse.releases import retention
from tests.nights import Cli
from tests.warehouse.releases.test_retention import empty, leave, there
from tests.warehouse.releasing import publish

pytestmark = pytest.mark.slow


def test_raw_polls_beyond_retention_are_removed_and_reported(cli: Cli, tmp_path: Path) -> None:
    store = empty(tmp_path / "warehouse")
    old, young = leave(store, 1, {0}, 11), leave(store, 2, {1}, 9)
    publish(store, "first", {}, inputs=(old, young))
    code, _, told = cli("--warehouse", store.root, "maintain")
    assert (code, "all releases are kept" in told) == (0, True)
    (store.root / "iosig.toml").write_text("[storage]\nkeep_landed_days = 10\n")
    code, printed, _ = cli("--warehouse", store.root, "maintain")
    assert code == 0
    assert "Raw polls removed: 1 landing (" in printed
    assert "Closed, never computed again: 1 day." in printed
    assert there(store) == {young}
    (store.root / "iosig.toml").write_text("[storage]\nkeep_landed_days = 8\n")
    code, printed, _ = cli("--warehouse", store.root, "maintain", "--json", "--now")
    raw = json.loads(printed)["landed"]
    assert (code, raw["landing_count"], raw["closed_days"]) == (0, 1, ["2018-02-02"])
    assert retention.read_closed_days(store) == {date(2018, 2, 1), date(2018, 2, 2)}
