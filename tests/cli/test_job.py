"""`iosig job` shows a run on a terminal, as versioned JSON, as a figure and as a page."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from iosig.flows.demo.simulated import find_shipped_logs
from iosig.warehouse.store.store import Store
from tests.flows.attributed_releases import attributed
from tests.nights import Cli, Night

LOG = next(path for path in find_shipped_logs() if path.name.startswith("ior_hdf5"))


def test_run_without_trace_is_described_by_its_storage_traffic(cli: Cli, quick_night: Night) -> None:
    code, out, _ = cli("--warehouse", quick_night.store.root, "job", "101")
    assert code == 0
    assert out.startswith("Job 101: s3d of ann, 8 nodes, 2026-03-02 23:00Z, 30 min, COMPLETED\n")
    assert "so its requests are unknown" in out
    assert "default      write" in out


def test_json_has_bytes_samples_and_neighbors(cli: Cli, quick_night: Night) -> None:
    code, out, _ = cli("--warehouse", quick_night.store.root, "job", "101", "--json")
    told = json.loads(out)
    assert (code, told["format"], told["job"]["job_id"]) == (0, "iosig-job/1", "101")
    assert {(row["filesystem"], row["direction"]) for row in told["io"]} == {("default", "write"), ("default", "read")}
    assert all(any(one["bytes_per_s"]) for one in told["samples"])
    assert told["neighbor_count"] == len(told["neighbors"])
    assert (told["traces"], told["other_runs_started_at"]) == ([], [])


@pytest.mark.slow
def test_trace_alone_needs_no_warehouse(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    root = tmp_path / "none"
    code, out, _ = cli("--warehouse", root, "job", "--trace", LOG, "--all")
    assert code == 0
    assert max(map(len, out.splitlines())) <= 80
    assert "Not found:" in out
    code, out, _ = cli("--warehouse", root, "job", "--trace", LOG, "--json")
    (trace,) = json.loads(out)["traces"]
    assert [one["module"] for one in trace["layers"]] == ["H5D", "H5F", "MPIIO", "POSIX", "STDIO"]
    cells = trace["heatmaps"][0]["cell_bytes"]
    assert sum(map(sum, cells)) == pytest.approx(sum(trace["heatmaps"][0]["time_bytes"]), rel=1e-4)
    assert not root.exists()


@pytest.mark.slow
def test_figure_and_page_are_written(cli: Cli, tmp_path: Path) -> None:
    picture, page = tmp_path / "heat.png", tmp_path / "job.html"
    code, out, err = cli("job", "--trace", LOG, "--plot", picture, "--html", page)
    assert (code, out) == (0, "")
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert "<script" not in page.read_text()
    assert "Ranks and time" in page.read_text()
    bare = next(path for path in find_shipped_logs() if path.name == "noposix.darshan")
    code, _, err = cli("job", "--trace", bare, "--plot", tmp_path / "none.png")
    assert code == 2
    assert "This run has no heat map" in err


@pytest.mark.slow
def test_interfering_jobs_are_listed_by_delay(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    store = Store(tmp_path / "warehouse")
    attributed(store)
    code, out, _ = cli("--warehouse", store.root, "job", "1")
    assert code == 0
    assert "2 of 3 bursts detected in the traffic were slowed." in out
    first, second = (line.split() for line in out.splitlines() if line.startswith("write "))
    assert (first[1:5], first[-3:]) == (["1", "lake", "60", "s"], ["bob/ior/8", "400", "B"])
    assert second[-3:] == ["ann/s3d/8", "250", "B"]
    code, out, _ = cli("--warehouse", store.root, "job", "3")
    assert "0 of 1 burst detected in the traffic was slowed." in out
    assert "Slowed bursts and top interferers" not in out
    code, out, _ = cli("--warehouse", store.root, "job", "2")
    assert "unattributed  500 B" in out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["101", "--started", "2026-03-01T00:00Z"], "No run of job '101' started then; the last runs started at"),
        (["10l"], "Did you mean 10"),
        (["101", "--cluster", "nowhere"], "No job '101' is in release"),
        (["--trace", str(LOG), "--cluster", "titan"], "--trace reads no warehouse"),
    ],
)
def test_unknown_job_or_cluster_is_refused(arguments: list[str], said: str, cli: Cli, quick_night: Night) -> None:
    code, _, err = cli("--warehouse", quick_night.store.root, "job", *arguments)
    assert code == 2
    assert said in " ".join(err.split())
