"""The command as users run it: its output, exit codes and imports."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import polars as pl
import pyarrow.parquet as pq
import pytest

from iosig.cli.main import SUBCOMMANDS
from iosig.warehouse.store.store import Store
from tests.nights import Cli, Night


@pytest.fixture
def released(quick_night: Night) -> Path:
    """A warehouse with one release; must not be changed."""
    return quick_night.store.root


# ---- landing and running


def test_landing_twice_changes_nothing_and_reports_it(cli: Cli, tmp_path: Path, landed_site: Store) -> None:
    files = landed_site.root.parent / "site"
    code, out, err = cli("--warehouse", tmp_path / "w", "land", files)
    assert code == 0
    assert "2 files landed with 2,884 rows" in out
    assert "jobs.sacct: landed 4 rows (sacct)" in err
    before = sorted(path.name for path in (tmp_path / "w").rglob("*"))
    code, out, err = cli("--warehouse", tmp_path / "w", "land", files)
    assert code == 0
    assert "0 files landed with 0 rows, 2 already landed" in out
    assert err.count("already landed, unchanged") == 2
    assert sorted(path.name for path in (tmp_path / "w").rglob("*")) == before


def test_refused_inputs_are_counted_and_the_rest_lands(cli: Cli, tmp_path: Path, landed_site: Store) -> None:
    shutil.copytree(landed_site.root.parent / "site", tmp_path / "in")
    (tmp_path / "in" / "torn.parquet").write_bytes(b"PAR1 and no more")
    with (tmp_path / "in" / "jobs.sacct").open("a") as log:
        log.write("104|ann|ior\n")
    code, out, _ = cli("--warehouse", tmp_path / "w", "land", tmp_path / "in", "--json")
    assert code == 0
    told = json.loads(out)
    assert (told["landed_files"], told["refused_files"], told["landed_rows"], told["refused_rows"]) == (2, 1, 2884, 1)
    refused = next(file for file in told["files"] if file["file"].endswith("torn.parquet"))
    assert refused["reason"]
    assert refused["remedy"]
    assert cli("--warehouse", tmp_path / "w", "land", tmp_path / "in", "--strict")[0] == 3
    assert cli("--warehouse", tmp_path / "w", "land", tmp_path / "in" / "torn.parquet")[0] == 3, "all of it is refused"
    assert cli("--warehouse", tmp_path / "w", "land", tmp_path / "in" / "polls.csv", "--strict")[0] == 5, "nothing new"


@pytest.mark.slow
@pytest.mark.usefixtures("checks_here")
def test_second_run_has_nothing_to_do(cli: Cli, site: Store) -> None:
    code, out, err = cli("--warehouse", site.root, "run", "--inline")
    assert code == 0
    assert re.search(r"^Release [0-9]{8}T[0-9]{6}Z-run \(passed\)", out, re.MULTILINE)
    assert out.startswith("Found 4 runs of 2 applications")
    assert "one row per" not in out, "tables are listed with --verbose only"
    assert "stage jobs" in err
    code, out, err = cli("--warehouse", site.root, "run", "--inline")
    assert (code, out) == (0, "")
    assert "Nothing new since release 20" in err
    assert cli("--warehouse", site.root, "run", "--inline", "--strict")[0] == 5


@pytest.mark.slow
@pytest.mark.usefixtures("quick_checks")
def test_failed_gate_exits_with_4(cli: Cli, site: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    from iosig.expectations import gate
    from iosig.warehouse.errors import GateFailed

    def refuse(_: pl.DataFrame) -> str:
        raise GateFailed("No release was published: 1 critical check failed.")

    monkeypatch.setattr(gate, "decide", refuse)
    code, _, err = cli("--warehouse", site.root, "run", "--inline")
    assert code == 4
    assert "No release was published" in err
    assert json.loads(cli("--warehouse", site.root, "releases", "--json")[1])["releases"] == []


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["run"], "No inputs have landed"),
        (["sql", "select 1"], "No release exists"),
        (["no-such-command"], "No such command"),
        (["lnad"], "Did you mean 'land'?"),
        (["--settings", "missing.toml", "sql", "select 1"], "'missing.toml' does not exist"),
    ],
)
def test_usage_error_exits_with_2(arguments: list[str], told: str, cli: Cli, tmp_path: Path) -> None:
    code, out, err = cli("--warehouse", tmp_path / "empty", *arguments)
    assert (code, out) == (2, "")
    assert told in err
    assert "Traceback" not in err


@pytest.mark.usefixtures("checks_here")
def test_invalid_settings_are_reported_with_file_and_field(cli: Cli, site: Store, tmp_path: Path) -> None:
    settings = tmp_path / "wrong.toml"
    settings.write_text("[classes]\nuniform_cof = 0.3\n")
    code, _, err = cli("--warehouse", site.root, "--settings", settings, "run", "--inline")
    assert code == 2
    assert f"{settings}: classes.uniform_cof" in err


@pytest.mark.parametrize("pattern", ["fs=(", "fs=.*"])
def test_invalid_file_system_pattern_is_refused(pattern: str, cli: Cli, site: Store, tmp_path: Path) -> None:
    settings = tmp_path / "wrong.toml"
    settings.write_text(f"[jobs]\nfilesystem_pattern = '{pattern}'\n")
    code, _, err = cli("--warehouse", site.root, "--settings", settings, "run", "--inline")
    assert code == 2
    assert "jobs.filesystem_pattern" in err


# ---- reading a release


class TestReading:
    def test_sql_prints_a_table(self, cli: Cli, released: Path) -> None:
        code, out, _ = cli("--warehouse", released, "sql", "select job_id, started_at from jobs order by 1")
        assert code == 0
        assert "2026-03-02 22:20:00" in out
        assert [line.split()[0] for line in out.splitlines() if line.strip()[:1].isdigit()] == [
            "100",
            "101",
            "102",
            "103",
        ]

    def test_json_has_iso_timestamps_and_whole_lists(self, cli: Cli, released: Path) -> None:
        query = "select job_id, started_at, sample_bytes_per_s from samples order by all limit 1"
        (row,) = json.loads(cli("--warehouse", released, "sql", query, "--format", "json")[1])
        assert (row["job_id"], row["started_at"]) == ("100", "2026-03-02T22:20:00+00:00")
        assert len(row["sample_bytes_per_s"]) == 181

    def test_export_includes_units_and_documentation(self, cli: Cli, released: Path, tmp_path: Path) -> None:
        code, out, _ = cli("--warehouse", released, "export", "job_io", "--output", tmp_path / "io.parquet")
        assert code == 0
        assert "8 rows of job_io" in out
        field = pq.read_schema(tmp_path / "io.parquet").field("estimated_bytes")
        assert field.metadata[b"unit"] == b"B"
        assert field.metadata[b"doc"].startswith(b"Best estimate of the bytes")

    @pytest.mark.slow
    @pytest.mark.usefixtures("quick_checks")
    def test_markup_and_sql_in_names_are_plain_text(self, cli: Cli, quick_night: Night, tmp_path: Path) -> None:
        site = quick_night.copy(tmp_path / "warehouse")
        log = tmp_path / "hostile.sacct"
        log.write_text(
            "JobID|User|JobName|NNodes|Start|End|State\n"
            "7|[red]x[/red]|[b]y'); drop table jobs; --|8|2026-03-03T00:05:00Z|2026-03-03T00:35:00Z|COMPLETED\n"
        )
        cli("--warehouse", site.root, "land", log)
        code, out, _ = cli("--warehouse", site.root, "run", "--inline")
        assert code == 0
        assert "%5Bred%5Dx%5B%2Fred%5D/[b]y'); drop table jobs; --/8" in out


@pytest.mark.slow
@pytest.mark.usefixtures("quick_checks")
def test_releases_diff_and_rollback_work_together(cli: Cli, quick_night: Night, tmp_path: Path) -> None:
    site = quick_night.copy(tmp_path / "warehouse")
    log = tmp_path / "more.sacct"
    log.write_text(
        "JobID|User|JobName|NNodes|Start|End|State\n9|bob|ior|8|2026-03-03T00:05:00Z|2026-03-03T00:35:00Z|FAILED\n"
    )
    cli("--warehouse", site.root, "land", log)
    cli("--warehouse", site.root, "run", "--inline")
    first, second = json.loads(cli("--warehouse", site.root, "releases", "--json")[1])["releases"]
    assert second["parent_release_id"] == first["release_id"]
    told = cli("--warehouse", site.root, "diff", first["release_id"], second["release_id"], "--json")[1]
    assert {row["table"]: row["added"] for row in json.loads(told)["tables"]}["jobs"] == 1
    count = "select count(*) as n from jobs"
    old = ("--release", first["release_id"], "--format", "csv")
    assert cli("--warehouse", site.root, "sql", count, *old)[1].split() == ['"n"', "4"]
    assert cli("--warehouse", site.root, "rollback", first["release_id"])[0] == 0
    assert cli("--warehouse", site.root, "sql", count, "--format", "csv")[1].split() == ['"n"', "4"]
    assert cli("--warehouse", site.root, "rollback", first["release_id"], "--strict")[0] == 5
    assert cli("--warehouse", site.root, "run", "--inline", "--strict")[0] == 5, "what was rolled back is excluded"
    assert cli("--warehouse", site.root, "rollback", "--end")[0] == 0
    assert cli("--warehouse", site.root, "run", "--inline")[0] == 0
    assert cli("--warehouse", site.root, "sql", count, "--format", "csv")[1].split() == ['"n"', "5"]


# ---- single files, and the demo


def test_classify_needs_no_warehouse(cli: Cli, tmp_path: Path) -> None:
    series = tmp_path / "job-7-writes.txt"
    series.write_text("".join(f"{60 * step} {min(step, 5) * 1_000_000}\n" for step in range(41)))
    code, out, _ = cli("--warehouse", tmp_path / "none", "classify", series, "--json")
    assert code == 0
    (row,) = json.loads(out)["classes"]
    assert (row["subject_id"], row["direction"], row["label"]) == ("job-7-writes", "write", "START")
    assert not (tmp_path / "none").exists()


def test_classify_refuses_a_job_log(cli: Cli, tmp_path: Path, landed_site: Store) -> None:
    code, out, err = cli("classify", landed_site.root.parent / "site" / "jobs.sacct")
    assert (code, out) == (3, "")
    assert "neither a series nor a trace" in err


def test_classify_accepts_a_trace_and_writes_its_throughput(cli: Cli, tmp_path: Path) -> None:
    trace = tmp_path / "run.json"
    phases = {"b_rank_avr": [2e6, 4e6], "t_rank_s": [100, 200], "t_rank_e": [200.0, 300.0]}
    trace.write_text(json.dumps({"write_sync": {"total_bytes": 6e8, "number_of_ranks": 4, "bandwidth": phases}}))
    code, out, err = cli("classify", trace, "--json", "--signal", tmp_path / "signal.csv")
    assert (code, err) == (0, "")
    written = {row["direction"]: row for row in json.loads(out)["classes"]}["write"]
    assert (written["subject_kind"], written["outcome"]) == ("trace", "too_short")
    # quarters of 75 s: 25 s of one phase lie in the second, then 75 s of the first phase's rate and the rest
    assert written["section_bytes"] == pytest.approx([0, 1e8, 1e8 + 1e8, 3e8])
    lines = (tmp_path / "signal.csv").read_text().splitlines()
    assert lines[0] == "trace_id,module,direction,is_async,time_s,interval_s,bytes_per_s"
    assert "run.json,MPIIO,write,false,150.0,1.0,2000000.0" in lines
    code, out, _ = cli("classify", trace)
    assert code == 0
    assert "MPIIO" in out
    assert "requests" in out


def test_signal_of_a_series_is_not_written(cli: Cli, tmp_path: Path) -> None:
    series = tmp_path / "job-7-writes.txt"
    series.write_text("0 0\n60 1000\n120 2000\n")
    code, _, err = cli("classify", series, "--signal", tmp_path / "signal.csv")
    assert code == 2
    assert "No signal" in err
    assert not (tmp_path / "signal.csv").exists()


@pytest.mark.long
def test_demo_compares_results_with_the_truth(cli: Cli, tmp_path: Path) -> None:
    """The README shows part of the story; `--full` adds all tables."""
    code, out, err = cli("demo", "--full", "--output", tmp_path / "demo")
    assert code == 0, err
    story = out[out.index("3 days of a simulated machine") :]
    assert max(len(line.rstrip()) for line in story.splitlines() if str(tmp_path) not in line) <= 80
    assert len(story.splitlines()) <= 52
    planted = [line for line in story.splitlines() if line.startswith(("+ ", "- "))]
    assert len(planted) == 4
    assert all(line.startswith("+") for line in planted), "each planted fact is found"
    assert "volumes are exact" in story
    readme = (Path(__file__).resolve().parents[2] / "README.md").read_text(encoding="utf-8")
    assert [line for line in readme.split("```text\n")[1].split("```")[0].splitlines() if line not in story] == []
    assert str(tmp_path / "demo" / "signature.png") in story
    verdicts = [line.split(": ")[1] for line in story.splitlines() if line.startswith("Release ")]
    assert verdicts[0] == "passed"
    assert len(verdicts) == 3
    scores = re.findall(r"^\S+ (?:reads|writes) .* (\d+) of (\d+) ", story, re.MULTILINE)
    assert len(scores) >= 10
    assert all(int(found) >= 0.9 * int(count) for found, count in scores), scores
    for expected in ("Tables", "Classes", "Traced runs", "Classes compared with the truth"):
        assert expected in out
    volumes = out[out.index("Volumes of runs") : out.index(story)].splitlines()
    assert max(map(len, map(str.rstrip, volumes))) <= 80
    rows = [line.split() for line in volumes if " read " in line or " write " in line]
    assert {"hacc", "nyx"} <= {row[0] for row in rows}
    assert all(row[2] == row[3] for row in rows), "what servers counted is what they served"
    assert "refused." in err
    code, out, err = cli("--warehouse", tmp_path / "demo" / "warehouse", "run")
    assert (code, "Nothing new since release" in out + err) == (0, True), "the site's settings lie in the warehouse"
    assert cli("demo", "--output", tmp_path)[0] == 2, "a folder that is not its own is left alone"


# ---- the program


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "before", "code", "told"),
    [
        (["--help"], "", 0, ""),
        (["land", "nowhere"], "", 2, "nowhere does not exist. Nothing was landed."),
        (["--help"], "main.iosig.main = lambda **_: 1 / 0", 1, "ZeroDivisionError"),
    ],
    ids=["done", "usage", "a bug"],
)
def test_program_exits_with_the_code_of_the_command(arguments: list[str], before: str, code: int, told: str) -> None:
    script = f"import importlib; main = importlib.import_module('iosig.cli.main'); {before}\nmain.program()"
    ended = subprocess.run([sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=False)
    assert ended.returncode == code
    assert told in ended.stderr
    assert ("Commands:" in ended.stdout) == (code == 0)


# ---- import costs


def test_help_and_commands_import_no_heavy_modules() -> None:
    heavy = ("duckdb", "polars", "numpy", "pyarrow", "prefect", "great_expectations", "pandas", "pydantic", "rich")
    code = f"""
import sys
sys.argv = ["iosig", "--help"]
import click
from iosig.cli.main import SUBCOMMANDS, iosig, main
try:
    main()
finally:
    for command in SUBCOMMANDS:
        iosig.get_command(click.Context(iosig), command)
    print([name for name in {heavy!r} if name in sys.modules], file=sys.stderr)
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stderr.strip() == "[]"
    assert all(name in ended.stdout for name in SUBCOMMANDS)


@pytest.mark.slow
def test_nightly_imports_neither_reports_nor_servers() -> None:
    code = """
import sys
import iosig.flows.nightly
# a run with nothing to do needs no method
methods = [name for name in sys.modules if name.startswith(("iosig.flows.steps.order", "iosig.transforms.signatures"))]
import iosig.flows.steps.order
names = ("iosig.reports.site", "matplotlib", "jinja2", "http.client", "prefect")
print(methods, [name for name in names if name in sys.modules])
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == "[] []"


def test_sql_imports_neither_iceberg_nor_prefect_nor_checks(released: Path) -> None:
    code = """
import sys
from iosig.cli import main
try:
    main()
finally:
    heavy = ("pyiceberg", "prefect", "great_expectations", "pandas", "polars", "sqlalchemy", "scipy")
    print([name for name in heavy if name in sys.modules], file=sys.stderr)
"""
    arguments = ["--warehouse", str(released), "sql", "select 1"]
    ended = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True)
    assert ended.stderr.strip() == "[]"
