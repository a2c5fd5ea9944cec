"""`iosig population` prints tables of 80 columns and JSON, draws a figure, and refuses invalid days."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from iosig.warehouse.store.store import Store
from tests.flows.populated_releases import populated
from tests.nights import Cli


@pytest.mark.slow
def test_population_is_printed_drawn_and_exported(cli: Cli, tmp_path: Path) -> None:
    store = Store(tmp_path / "warehouse")
    populated(store)
    code, out, err = cli("--warehouse", store.root, "population", "--by", "user", "--plot", tmp_path / "p.png")
    assert code == 0, err
    assert out.startswith("6 runs, 6 node hours\n")
    assert "Classes: 4 exact (counted 2, series 1, traced 1), 1 inferred from signatures.\n" in out
    assert "No class: 1 no_signature, 1 too_short, 1 unreliable_signature.\n" in out
    assert "Inferred and exact classes agree in 50% of 2 runs that have both.\n" in out
    assert max(map(len, out.splitlines())) <= 80
    assert (tmp_path / "p.png").exists()
    told = json.loads(cli("--warehouse", store.root, "population", "--json", "--top", "1")[1])
    assert [group["name"] for group in told["groups"]] == ["ior"]
    assert cli("--warehouse", store.root, "population", "--since", "2019-01-01", "--strict")[0] == 5
    assert cli("--warehouse", store.root, "population", "--since", "soon")[0] == 2
