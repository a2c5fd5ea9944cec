"""The Python interface reads a release as the command does, and imports no scheduler and no checks."""

from __future__ import annotations

import re
import subprocess
import sys
from html import escape
from pathlib import Path

import polars as pl
import pytest

import iosig
from iosig.answers.attribution.query import Query as WhoQuery, who
from iosig.answers.opening.release import OpenedRelease
from iosig.answers.single.periods import Query, find_periods
from iosig.answers.status.condition import read_condition
from iosig.answers.status.problems import find_problems
from iosig.settings.model import Settings, load
from iosig.streams.landing import ReadOptions
from iosig.warehouse.errors import UsageError
from iosig.warehouse.releases.releases import Release
from iosig.warehouse.store.store import Store
from tests.flows.attributed_releases import TABLES, opened
from tests.flows.signature_releases import Made, publish
from tests.sql.given import at
from tests.warehouse.releasing import Content, publish as publish_tables

ROOT = Path(__file__).resolve().parents[3]
JOB_IO: dict[str, Content] = {
    "job_io": {
        9: """
            job_id started_at filesystem direction estimate_source estimated_bytes estimated_low_bytes \
                estimated_high_bytes
            1      09:00:00   lake       write     attributed      200             150                 250
            2      09:00:00   lake       write     counted         60              60                  60
            2      09:00:00   lake       read      counted         40              40                  40
            3      10:01:00   lake       write     attributed      100             80                  120
            """
    }
}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return Store(tmp_path_factory.mktemp("opening") / "w")


@pytest.fixture(scope="module")
def published(store: Store) -> Release:
    return publish_tables(store, "attributed", TABLES | JOB_IO)


@pytest.fixture
def release(store: Store, published: Release) -> OpenedRelease:
    return iosig.open(store.root).release(published.release_id)


def test_releases_are_listed_and_selected(store: Store, published: Release) -> None:
    warehouse = iosig.open(str(store.root))
    assert [entry.release_id for entry in warehouse.releases()] == [published.release_id]
    assert warehouse.release() == warehouse.release(published.release_id[:10])
    with pytest.raises(UsageError, match="not a release"):
        warehouse.release("2001")


def test_tables_are_frames(release: OpenedRelease) -> None:
    jobs = release.table("jobs")
    assert jobs["job_id"].to_list() == release.sql("select job_id from jobs")["job_id"].to_list() != []
    assert "jobs" in release.tables
    selected = release.sql("select * from jobs where job_id = $job_id", {"job_id": jobs["job_id"][0]})
    assert set(selected["job_id"]) == {jobs["job_id"][0]}
    with release.connect() as connection:
        assert connection.sql("select count(*) from jobs").fetchall() == [(jobs.height,)]
    with pytest.raises(UsageError, match="not a table"):
        release.table('jobs" union from "rejects')


def test_who_and_slowdowns_are_those_of_the_command(release: OpenedRelease) -> None:
    since, until = at("10:00:00"), at("10:02:00")
    answer = release.who("lake", since=since, until=until)
    with opened() as connection:
        expected = who(connection, WhoQuery("lake", since, until))
    assert answer.jobs.equals(expected.jobs)
    assert answer.measured_bytes == expected.measured_bytes
    assert release.slowdowns("lake", since=since, until=until).query == WhoQuery("lake", since, until)


def test_top_and_status_are_those_of_the_commands(store: Store, release: OpenedRelease) -> None:
    members = release.top("user", filesystem="lake").members
    assert members.select("name", "estimated_bytes", "share").rows() == [("ann", 300.0, 0.75), ("bob", 100.0, 0.25)]
    assert release.top("code", direction="read").members["name"].to_list() == ["s3d"]
    status = iosig.open(store.root).status()
    condition = read_condition(store, load(None, store.root), status.condition.at)
    assert status.condition.release_id == release.release.release_id == condition.release_id
    assert status.problems == find_problems(condition, load(None, store.root).alerts)


def test_notebooks_show_answers_as_tables(store: Store, release: OpenedRelease) -> None:
    since, until = at("10:00:00"), at("10:02:00")
    answer = release.who("lake", since=since, until=until)
    shown = answer._repr_html_()
    assert "lake, " in shown
    assert shown.count("<tr>") == 1 + answer.candidates.height > 1
    assert all(job_id in shown for job_id in answer.candidates["job_id"])
    slowdowns = release.slowdowns("lake", since=since, until=until)
    assert slowdowns._repr_html_().count("<tr>") == (1 + slowdowns.runs.height if slowdowns.runs.height else 0)
    ranking = release.top("user")
    assert ranking._repr_html_().count("<tr>") == 1 + ranking.members.height
    status = iosig.open(store.root).status()
    assert all(escape(item.sentence)[:60] in status._repr_html_() for item in (*status.problems, *status.notes))


def test_periods_of_a_file_are_those_of_the_command(tmp_path: Path) -> None:
    seconds = pl.int_range(0, 600, eager=True)
    path = tmp_path / "node write.csv"
    pl.DataFrame({"time_s": seconds + 1, "write_bytes_per_s": (seconds % 60 < 5) * 1e9}).write_csv(path)
    result = iosig.find_periods(path)
    assert result.rows["period_s"].to_list() == pytest.approx([60.0], rel=0.02)
    assert re.search(r"<td>periodic</td><td>60(\.\d+)? s</td>", result._repr_html_())
    expected = find_periods(path, Settings(), ReadOptions(), Query())
    assert result.rows.equals(expected.rows)
    assert "<svg" in result.draw()._repr_html_()
    pl.DataFrame({"time_s": seconds + 1, "write_bytes_per_s": seconds * 0.0}).write_csv(path)
    with pytest.raises(UsageError, match="Nothing to draw"):
        iosig.find_periods(path).draw()


def test_notebooks_show_releases_and_pictures(release: OpenedRelease, tmp_path: Path) -> None:
    assert release._repr_html_().startswith(f"<b>{release.release.release_id}</b>")
    picture = release.draw_who("lake", since=at("10:00:00"), until=at("10:02:00"))
    assert picture._repr_html_().startswith("<svg")
    signed = Store(tmp_path / "signed")
    publish(signed, "first", [Made()])
    assert "ior_a" in iosig.open(signed.root).release().draw_signature("ior_a")._repr_html_()


def test_opening_a_release_imports_little(store: Store, published: Release) -> None:
    code = (
        "import sys, iosig; iosig.open(sys.argv[1]).release().sql('select 1'); "
        "print({'prefect', 'great_expectations', 'pandas', 'matplotlib', 'pyiceberg'} & sys.modules.keys())"
    )
    ended = subprocess.run([sys.executable, "-c", code, str(store.root)], capture_output=True, text=True, check=True)
    assert ended.stdout == "set()\n"


def test_examples_of_the_page_run(store: Store, published: Release, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    text = "\n".join(re.findall(r"```python\n(.*?)```", page, re.DOTALL))
    for given, here in (("/data/iosig", str(store.root)), ("2018, 2, 9, 11", "2018, 2, 9, 10"), ("snx11025", "lake")):
        text = text.replace(given, here)
    monkeypatch.chdir(store.root.parent)
    names: dict[str, object] = {}
    exec(text, names)
    assert (store.root.parent / "who.svg").is_file()
