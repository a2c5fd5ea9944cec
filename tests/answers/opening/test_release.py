"""The Python interface reads a release as the command does, and imports no scheduler and no checks."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import iosig
from iosig.answers.attribution.query import Query, who
from iosig.answers.opening.release import OpenedRelease
from iosig.warehouse.errors import UsageError
from iosig.warehouse.releases.releases import Release
from iosig.warehouse.store.store import Store
from tests.flows.attributed_releases import attributed, opened
from tests.flows.signature_releases import Made, publish
from tests.sql.given import at

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return Store(tmp_path_factory.mktemp("opening") / "w")


@pytest.fixture(scope="module")
def published(store: Store) -> Release:
    return attributed(store)


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
        expected = who(connection, Query("lake", since, until))
    assert answer.jobs.equals(expected.jobs)
    assert answer.measured_bytes == expected.measured_bytes
    assert release.slowdowns("lake", since=since, until=until).query == Query("lake", since, until)


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
