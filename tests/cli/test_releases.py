"""`iosig releases` and queries report redirected release ids."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from iosig.warehouse.store.store import Store
from tests.nights import Cli
from tests.warehouse.releasing import publish, supersede


@pytest.mark.slow
def test_redirected_release_id_is_reported(cli: Cli, tmp_path: Path) -> None:
    store = Store(tmp_path / "warehouse")
    old = publish(store, "first", {"jobs": {9: "job_id \n 1"}})
    new = supersede(store, old, "second", {"jobs": {9: "job_id \n 2"}})
    asked = ["--warehouse", str(store.root)]
    _, printed, said = cli(*asked, "sql", "select job_id from jobs", "--release", old.release_id, "--format", "jsonl")
    assert json.loads(printed)["job_id"] == "2"
    assert f"{old.release_id} was replaced by {new.release_id} on 2" in said
    assert "to test it" in said
    assert "gave way" not in cli(*asked, "sql", "select 1", "--release", new.release_id)[2]
    assert json.loads(cli(*asked, "releases", "--json")[1])["releases"][0]["replaced"] == [old.release_id]
    assert f"for {old.release_id}" in cli(*asked, "releases")[1]
