"""`iosig status` for people, programs and Prometheus, with an exit code for monitors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from iosig.warehouse.store.store import Store
from tests.nights import Cli, Night


def test_status_is_printed_as_table_json_and_prometheus_metrics(cli: Cli, quick_night: Night, tmp_path: Path) -> None:
    asked = ("--warehouse", str(quick_night.store.root), "status")
    code, out, _ = cli(*asked)
    assert code == 0
    assert out.startswith("All is well.")
    assert quick_night.release.release_id in out
    assert max(map(len, out.splitlines())) <= 100
    code, out, _ = cli(*asked, "--json")
    told = json.loads(out)
    assert (code, told["release_id"], told["problems"]) == (0, quick_night.release.release_id, [])
    code, out, _ = cli(*asked, "--format", "prometheus", "--output", str(tmp_path / "iosig.prom"))
    assert (code, out) == (0, "")
    assert f'release_id="{quick_night.release.release_id}"' in (tmp_path / "iosig.prom").read_text()


def test_problems_come_first_and_exit_with_7(cli: Cli, landed_site: Store, tmp_path: Path) -> None:
    settings = tmp_path / "iosig.toml"
    settings.write_text("[alerts]\nmin_free_ratio = 1.0\nmax_release_delay_s = 1e-6\n")
    code, out, _ = cli("--warehouse", str(landed_site.root), "--settings", str(settings), "status")
    assert code == 7
    first, second = out.splitlines()[:2]
    assert "landed inputs are in no release" in first
    assert "of the disk is free" in second


def test_refused_inputs_are_a_problem(cli: Cli, quick_night: Night, tmp_path: Path) -> None:
    store = quick_night.copy(tmp_path / "warehouse")
    (tmp_path / "torn.parquet").write_bytes(b"PAR1 and no more")
    assert cli("--warehouse", store.root, "land", tmp_path / "torn.parquet")[0] == 3
    code, out, _ = cli("--warehouse", store.root, "status")
    assert code == 7
    assert out.startswith("! 1 input (torn.parquet) was refused whole")
    assert "1 landed input\n" in out
    assert "All is well" not in out


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [((), "There is no warehouse in"), (("--output", "x"), "There is no warehouse in")],
)
def test_missing_warehouse_is_a_usage_error(cli: Cli, tmp_path: Path, asked: tuple[str, ...], sentence: str) -> None:
    code, _, err = cli("--warehouse", str(tmp_path / "none"), "status", *asked)
    assert code == 2
    assert sentence in err
