"""Each extension that CONTRIBUTING promises needs a new file and one other edit; tried in a copy of the project."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bench import house
from tests.nights import write_small_site

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parent.parent
_COPIED = ("docs", "sql", *house.ROOMS)

#: new files, by their path
FILES = {
    "sql/samples/users.sql": """\
-- samples.users: one row per user
select
    jobs.user,
    count(*) as logged_count
from stage.jobs
where jobs.user is not null
group by jobs.user
""",
    "warehouse/contracts/users.py": '''\
"""Users: who ran how much."""

from iosig.warehouse.contracts import columns as c
from iosig.warehouse.contracts.types import Column, Table

USERS = Table(
    name="users",
    layer="samples",
    grain="one row per user",
    key=("user",),
    columns=(c.USER, Column("logged_count", "int", "runs that the job log has")),
)
''',
    "flows/steps/users.py": '''\
"""Users: who ran how much."""

from iosig.flows.steps.items import StepContext
from iosig.flows.steps.step import Step, read_live
from iosig.warehouse.contracts.jobs import JOBS
from iosig.warehouse.contracts.users import USERS


def count_users(context: StepContext) -> int:
    """Count every user's runs. Returns the users."""
    with context.engine() as connection:
        context.expose(connection, JOBS)
        return context.build(connection, USERS)


STEP = Step("users", count_users, (read_live(JOBS),), (USERS,))
''',
    "warehouse/sources/jobs/roll.py": '''\
"""Roll calls: a job a line, its fields apart by commas."""

import polars as pl

from iosig.warehouse.contracts.jobs import JOB_RECORDS
from iosig.warehouse.sources.jobs.records import settle
from iosig.warehouse.sources.protocol import Source
from iosig.warehouse.sources.rows import times
from iosig.warehouse.sources.rows.log_lines import blocks
from iosig.warehouse.sources.rows.rejects import reject_batches

_FIELDS = ("roll", "job_id", "user", "job_name", "node_count", "started_at", "ended_at")


def read(path, reading):
    """Read a roll call."""
    for block in blocks(path):
        yield from reject_batches(block.refused)
        cells = [pl.col("raw").str.split(",").list.get(place).alias(name) for place, name in enumerate(_FIELDS)]
        rows = block.rows.with_columns(cells).with_columns(
            pl.col("started_at", "ended_at").str.to_datetime("%FT%TZ").cast(times.INSTANT),
            reason=pl.lit(None, pl.String),
            remedy=pl.lit(None, pl.String),
        )
        yield from settle(rows.drop("roll"), "UTC").batches(JOB_RECORDS)


SOURCE = Source("roll", "A job a line.", "jobs", lambda head: head.start.startswith(b"roll,"), read, precedence=99)
''',
    "reports/users.py": '''\
"""The picture of users: a bar each."""

from iosig.reports.panels import picture


@picture((4, 3))
def draw(figure, counts):
    """Draw how many runs each user has."""
    figure.add_subplot().bar(list(counts), list(counts.values()))
''',
    "cli/users.py": '''\
"""`iosig users`."""

from pathlib import Path

import click


@click.command("users")
@click.option("--output", "target", type=click.Path(path_type=Path), required=True)
@click.pass_obj
def users_command(warehouse, target):
    """Draw who ran how much."""
    from iosig.reports.users import draw
    from iosig.warehouse.releases.reading import open_release
    from iosig.warehouse.releases.releases import find

    with open_release(warehouse.store, find(warehouse.store, None)) as connection:
        draw(dict(connection.sql("select user, logged_count from users").fetchall())).write(target)
''',
    "studies/coins/__init__.py": '''\
"""How often coins show heads: `iosig study coins`."""

from iosig.studies.study import SEED, Study, seed_count_option

STUDY = Study("coins", "How often coins show heads.", "Toss coins.", (seed_count_option(10, "Coins."), SEED))
''',
    "studies/coins/running.py": '''\
"""The study itself."""

import random

from iosig.studies.study import SeedParams as StudyParams

__all__ = ["StudyParams", "study"]


def study(params, report_progress=None):
    """Return how many of the coins show heads."""
    draws = random.Random(params.seed)
    return sum(draws.random() < 0.5 for _ in range(params.seed_count))
''',
    "studies/coins/page.py": '''\
"""What the study shows."""


def document(results):
    """Return the results as plain values."""
    return {"heads": results}


def values(results):
    """Return what the page is made of."""
    return {"coins": [{"heads": results}]}


def figures(results):
    """Return what draws each figure of the page: there is none."""
    return {}
''',
    "studies/coins/page.md": """\
# How often coins show heads

{% call table(coins, "Coins") %}
| heads |
| {heads} |
{% endcall %}
""",
}
#: the other edit of each extension: the file, the old text, the new text
EDITS = {
    "column, in its table": (
        "warehouse/contracts/samples.py",
        "        c.SAMPLE_COUNT,\n        c.FIRST_RUN_STARTED_AT,\n        c.LAST_RUN_ENDED_AT,\n",
        '        Column("listed_count", "int", "runs that the job log has of it", nullable=True),\n',
    ),
    "column, in what makes it": (
        "sql/samples/applications.sql",
        "    max(jobs.ended_at) as last_run_ended_at",
        ",\n    count(*) as listed_count",
    ),
    "column of signatures": (
        "warehouse/contracts/signatures.py",
        '        Column("burst_count", "int", "Bursts of the signature.", nullable=True),\n',
        '        Column("kept_count", "int", "runs that are kept", nullable=True),\n',
    ),
    "column of signatures, in what makes it": (
        "flows/steps/signatures.py",
        '        "used_sample_count": sample_count - len(left_out),\n',
        '        "kept_count": sample_count - len(left_out),\n',
    ),
    "step": (
        "flows/steps/order.py",
        "    metadata_periods.STEP,\n",
        "    users.STEP,\n",
    ),
    "step, imported": ("flows/steps/order.py", "    traces,\n", "    users,\n"),
    "subcommand": (
        "cli/main.py",
        "SUBCOMMANDS = {\n",
        '    "users": ("iosig.cli.users", "Draw who ran how much."),\n',
    ),
    "setting": (
        "settings/model.py",
        '    """Parameters of the data quality checks."""\n',
        '\n    most_listed_count: int = Field(9, ge=0, description="an application with more runs is told")\n',
    ),
}
CHECK = {
    "type": "expect_column_values_to_be_between",
    "kwargs": {"column": "listed_count", "max_value": 1},
    "severity": "info",
    "meta": {"name": "is_rare", "doc": "An application runs once.", "remedy": "Nothing is to be done."},
}


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project, and a warehouse with a release from before the extensions."""
    copy = tmp_path_factory.mktemp("copy")
    for name in _COPIED:
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__", "data"))
    shutil.copytree(ROOT / "iosig", copy / "iosig", symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    write_small_site(copy / "site")
    iosig(copy, "land", "site")
    iosig(copy, "run", "--inline", "--until", "2026-03-02")
    return copy


@pytest.fixture(scope="module")
def copy(before: Path) -> Path:
    """The same copy with an extension of each kind, after another night."""
    for place, text in FILES.items():
        (before / place).parent.mkdir(exist_ok=True)
        (before / place).write_text(text)
    for place, stands, follows in EDITS.values():
        path = before / place
        assert path.read_text().count(stands) == 1, place
        path.write_text(path.read_text().replace(stands, stands + follows))
    suite = before / "expectations" / "applications.json"
    document = json.loads(suite.read_text())
    document["expectations"].append(CHECK)
    suite.write_text(json.dumps(document))
    (before / "more.roll").write_text("roll,900,eve,ior,8,2026-03-03T00:10:00Z,2026-03-03T00:40:00Z\n")
    iosig(before, "land", "more.roll")
    iosig(before, "run", "--inline")
    return before


def iosig(copy: Path, *arguments: str) -> str:
    """Run the command of the copy; return its output."""
    return python(copy, "-c", "from iosig.cli import main; main()", *arguments)


def python(copy: Path, *arguments: str) -> str:
    environment = os.environ | {"PYTHONPATH": str(copy), "IOSIG_WAREHOUSE": str(copy / "scratch")}
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=copy,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def queried(copy: Path, query: str) -> list[tuple[object, ...]]:
    return [tuple(json.loads(line).values()) for line in iosig(copy, "sql", query, "--format", "jsonl").splitlines()]


def test_copy_of_the_project_is_imported(copy: Path) -> None:
    assert Path(python(copy, "-c", "import iosig.flows; print(iosig.flows.__file__)").strip()).is_relative_to(copy)


def test_column_can_be_added(copy: Path) -> None:
    found = queried(copy, "select application, listed_count from applications where user = 'ann' order by all")
    assert found == [("ior", 2), ("s3d", 2)]
    python(copy, "-m", "iosig.cli.reference")
    assert "runs that the job log has of it" in (copy / "docs" / "dictionary.md").read_text()


def test_column_of_signatures_can_be_added(copy: Path) -> None:
    found = queried(copy, "select kept_count = used_sample_count as same, count(*) from signatures group by all")
    assert [same for same, _ in found] == [True]


def test_table_and_its_step_can_be_added(copy: Path) -> None:
    assert queried(copy, "from users order by user") == [("ann", 4), ("eve", 1)]
    assert queried(copy, "select count(*) from quality where table_name = 'users' and success") != [(0,)]


def test_input_format_can_be_added(copy: Path) -> None:
    assert "roll" in iosig(copy, "land", "--format", "help")
    assert queried(copy, "select application from jobs where user = 'eve'") == [("ior",)]


def test_check_can_be_added(copy: Path) -> None:
    found = queried(copy, "select success, unexpected_count from quality where expectation = 'is_rare'")
    assert found == [(False, 2)]


def test_setting_can_be_added(copy: Path) -> None:
    (copy / "own.toml").write_text("[quality]\nmost_listed_count = 3\n")
    code = (
        "import sys; from pathlib import Path; from iosig.settings.model import load; "
        "print(load(Path(sys.argv[1]), Path()))"
    )
    assert "most_listed_count=3" in python(copy, "-c", code, "own.toml")
    python(copy, "-m", "iosig.cli.reference")
    assert "an application with more runs is told" in (copy / "docs" / "settings.md").read_text()


def test_figure_can_be_added(copy: Path) -> None:
    iosig(copy, "users", "--output", "users.png")
    assert (copy / "users.png").read_bytes().startswith(b"\x89PNG")


def test_study_can_be_added(copy: Path) -> None:
    assert "How often coins show heads." in iosig(copy, "study", "--help")
    assert json.loads(iosig(copy, "study", "coins", "--seeds", "4", "--json"))["results"]["heads"] in range(5)
