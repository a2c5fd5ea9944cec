"""`iosig land` of servers and Slurm, and the time zones of its inputs."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from tests.fake_prometheus import fake_prometheus
from tests.nights import Cli


@pytest.mark.parametrize(
    ("told", "sentence"),
    [
        (("--since", "2026-03-01", "x"), "--since needs --prometheus or --slurm"),
        (("--since", "2026-03-01", "--slurm", "--follow"), "--since cannot be combined with --follow"),
        (("--follow",), "--follow needs folders to watch"),
        (("--prometheus", "ftp://ann:mine@host"), "ftp://host is not the address of a Prometheus server"),
    ],
)
def test_conflicting_options_are_refused(cli: Cli, tmp_path: Path, told: tuple[str, ...], sentence: str) -> None:
    code, _, err = cli("--warehouse", tmp_path / "w", "land", *told)
    assert (code, sentence in err) == (2, True), err


@pytest.mark.slow
def test_prometheus_and_slurm_are_landed(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ours = ("--warehouse", tmp_path / "w", "land", "--json")
    with fake_prometheus() as fake:
        fake.add("lustre_read_bytes_total", {time.time() - 200: "5"})
        (tmp_path / "w").mkdir()
        (tmp_path / "w" / "iosig.toml").write_text("live.backfill_days = 0.01")
        code, out, _ = cli(*ours, "--prometheus", fake.url)
        assert (code, json.loads(out)["landed_rows"]) == (0, 2)
        monkeypatch.setenv("PATH", "")
        code, out, _ = cli(*ours, "--strict", "--prometheus", fake.url, "--slurm")
    files = json.loads(out)["files"]
    assert (code, files[0]["landed_rows"]) == (3, 0)
    assert [one["reason"] for one in files[1:]] == [
        f"`{name}` is not installed on this machine, or not executable." for name in ("sacct", "squeue")
    ]


def test_time_zone_and_time_range_are_printed(cli: Cli, tmp_path: Path) -> None:
    log, warehouse = tmp_path / "jobs.sacct", ("--warehouse", tmp_path / "w")
    log.write_text("JobID|Start|End|State\n7|2026-03-03T10:00:00|2026-03-03T11:30:00|COMPLETED\n")
    code, out, err = cli(*warehouse, "land", log)
    assert "The start time 2026-03-03T10:00:00 has no time zone. Pass the input's time zone" in err
    assert "1 whole file" in out
    code, _, err = cli(*warehouse, "land", log, "--time-zone", "Europe/Berlin")
    assert code == 0
    assert "2026-03-03 09:00:00 to 2026-03-03 10:30:00 UTC, local times read as Europe/Berlin" in err
    code, out, err = cli(*warehouse, "land", log, "--time-zone", "Asia/Tokyo", "--json")
    (file,) = json.loads(out)["files"]
    assert "--replace lands it with Asia/Tokyo" in err
    assert (file["time_zone"], file["other_time_zone"]) == ("Europe/Berlin", "Asia/Tokyo")
    assert (file["first_at"], file["last_at"]) == ("2026-03-03T09:00:00+00:00", "2026-03-03T10:30:00+00:00")
    code, out, _ = cli(*warehouse, "land", log, "--time-zone", "Asia/Tokyo", "--replace", "--json")
    assert json.loads(out)["files"][0]["first_at"] == "2026-03-03T01:00:00+00:00"


def test_explanation_lands_nothing(cli: Cli, tmp_path: Path) -> None:
    log, ours = tmp_path / "jobs.sacct", ("--warehouse", tmp_path / "w", "land", "--explain")
    log.write_text("JobID|QOS|Start|State\n7|high|2026-03-03T10:00:00|COMPLETED\n8|2026-03-03T10:00:00|COMPLETED\n")
    code, out, _ = cli(*ours, "--time-zone", "UTC", log)
    assert code == 0
    assert f"{log}: sacct." in out
    assert "Taken (3): jobid (job_id), start (started_at), state (state)" in out
    assert "Ignored (1): qos" in out
    assert "The line has 3 fields; the header has 4." in out
    code, out, _ = cli(*ours, "--json", log)
    document = json.loads(out)
    assert (code, document["format"], document["input_format"]) == (3, "iosig-explanation/1", "sacct")
    assert "has no time zone" in document["reason"]
    code, _, err = cli(*ours, "--replace", log)
    assert (code, "--explain needs files" in err) == (2, True)
    assert not (tmp_path / "w").exists()
