"""`iosig top` prints a ranking in 80 columns and as JSON."""

from __future__ import annotations

import pytest

from iosig.warehouse.store.store import Store
from tests.answers.test_top import TABLES
from tests.documents import require_schema
from tests.nights import Cli
from tests.warehouse.releasing import publish

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    made = Store(tmp_path_factory.mktemp("ranked") / "warehouse")
    publish(made, "ranked", TABLES)
    return made


def test_ranking_fits_80_columns_and_counts_runs_without_an_estimate(store: Store, cli: Cli) -> None:
    code, out, _ = cli("--warehouse", store.root, "top", "--by", "user", "--top", 2)
    lines = out.splitlines()
    assert code == 0
    assert lines[0] == "Bytes by user, the first 2 of 4"
    assert lines[3].split() == ["bob", "1", "-", "650", "B", "650", "B", "65%", "550-?", "8%"]
    assert "5 runs: estimated 1 kB; 1 without an estimate. Polls measured 1.56 kB in this time." in out
    assert max(map(len, lines[1:5])) <= 80


def test_json_matches_its_schema(store: Store, cli: Cli) -> None:
    code, out, _ = cli("--warehouse", store.root, "top", "--by", "account", "--since", "2018-02-09T11:00", "--json")
    assert (code, require_schema(out)) == (0, ["iosig-top/1"])
