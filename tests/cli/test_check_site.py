"""`iosig check-site` prints tables in 80 columns, numbered advice, and JSON by its schema."""

from __future__ import annotations

import json

import pytest

from iosig.warehouse.store.store import Store
from tests.answers.site_check.test_site_check import TABLES
from tests.documents import require_schema
from tests.nights import Cli
from tests.warehouse.releasing import publish

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    made = Store(tmp_path_factory.mktemp("checked") / "warehouse")
    publish(made, "checked", TABLES)
    return made


def test_tables_fit_80_columns_and_advice_is_numbered(store: Store, cli: Cli) -> None:
    code, out, _ = cli("--warehouse", store.root, "check-site")
    assert code == 0
    assert "1. lake has no data on 2 days between 2018-02-06 and 2018-02-09. Land the missing files." in out
    assert "11. 10% of the bytes are attributed." in out
    assert max(len(line) for line in out.splitlines() if not line[:1].isdigit()) <= 100
    assert "cannot tell" in out


def test_json_matches_its_schema(store: Store, cli: Cli) -> None:
    code, out, _ = cli("--warehouse", store.root, "check-site", "--top", 1, "--json")
    assert (code, require_schema(out)) == (0, ["iosig-check-site/1"])
    document = json.loads(out)
    assert (document["waiting_count"], len(document["waiting"])) == (2, 1)
