"""The report of a second night builds only pages with new inputs, and equals a report built from scratch."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import pytest

from iosig.answers.report import applications, fingerprints, runs
from iosig.answers.report.build import report
from iosig.answers.report.pseudonyms import create_pseudonymizer
from iosig.reports.site.packing import unpack_document
from iosig.settings.model import Settings
from iosig.warehouse.releases.releases import Release
from iosig.warehouse.store.store import Store
from tests.made_up_release import SiteSize, made_up_release

pytestmark = pytest.mark.long

_SIZE = SiteSize(applications=12, runs=40, days=5)
Asked = dict[str, set[Any]]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> tuple[Store, Release, Release]:
    """A warehouse of two nights: eight of twelve applications run in the second."""
    store = Store(tmp_path_factory.mktemp("nights") / "warehouse")
    return store, made_up_release(store, _SIZE), made_up_release(store, _SIZE, is_next_night=True)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    """Record the reads for pages: applications, hours, and days of file systems."""
    found: Asked = {"applications": set(), "hours": set(), "days": set()}
    read, read_runs, read_filesystems = applications.read, runs.read_runs, runs.read_filesystems

    def of_applications(connection: Any, signatures: Any, operations: Any, chosen: Any) -> Any:
        found["applications"] |= set(chosen)
        return read(connection, signatures, operations, chosen)

    def of_hours(connection: Any, chosen: Any) -> Any:
        found["hours"] |= set(chosen)
        return read_runs(connection, chosen)

    def of_days(connection: Any, calendars: Any, chosen: Any) -> Any:
        found["days"] |= {str(day) for _, day in chosen}
        return read_filesystems(connection, calendars, chosen)

    monkeypatch.setattr(applications, "read", of_applications)
    monkeypatch.setattr(runs, "read_runs", of_hours)
    monkeypatch.setattr(runs, "read_filesystems", of_days)
    return found


def bytes_in(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("is_hiding", [False, True])
def test_incremental_report_equals_a_report_from_scratch(
    site: tuple[Store, Release, Release], asked: Asked, tmp_path: Path, *, is_hiding: bool
) -> None:
    store, first, second = site
    hider = create_pseudonymizer(store, Settings()) if is_hiding else None
    report(store, first, tmp_path / "pages", list, hider)
    assert len(asked["applications"]) == 12
    for each in asked.values():
        each.clear()
    report(store, second, tmp_path / "pages", list, hider)
    assert len(asked["applications"]) == 8
    assert {str(hour)[:10] for hour in asked["hours"]} == {"2026-01-06"}
    # runs of the last day may have begun on the day before
    assert {"2026-01-06"} <= asked["days"] <= {"2026-01-05", "2026-01-06"}
    report(store, second, tmp_path / "whole", list, hider)
    again, whole = (bytes_in(tmp_path / name / second.release_id) for name in ("pages", "whole"))
    assert again == whole
    assert len(again) > 40
    documents = "".join(json.dumps(unpack_document(data)) for path, data in again.items() if path.startswith("data/"))
    assert "slows" in documents
    assert bool(re.search(r'"u\d+[/"]', documents)) == (not is_hiding)


def test_unchanged_release_reads_nothing_for_pages(
    site: tuple[Store, Release, Release], asked: Asked, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, first, _ = site
    assert report(store, first, tmp_path / "pages", list).new_count > 40
    for each in asked.values():
        each.clear()
    assert report(store, first, tmp_path / "pages", list).new_count == 0
    assert asked == {"applications": set(), "hours": set(), "days": set()}
    monkeypatch.setattr(fingerprints, "hash_program", lambda: "another one")
    assert report(store, first, tmp_path / "pages", list).new_count == 0
    assert len(asked["applications"]) == 12, "another program may make other pages"


def test_pages_are_reproducible_despite_ties(tmp_path: Path) -> None:
    # all applications of the benchmark move equal bytes per minute, so names must break the ties
    store = Store(tmp_path / "warehouse")
    release = made_up_release(store, SiteSize(applications=60, runs=900, days=2))
    first, *others = (_written_anew(store, release, tmp_path / str(number)) for number in range(4))
    for other in others:
        assert {path for path in first if first[path] != other[path]} == set()


def _written_anew(store: Store, release: Release, folder: Path) -> dict[str, bytes]:
    report(store, release, folder, list)
    return bytes_in(folder / release.release_id)


def test_pseudonymized_report_never_reuses_pages_with_names(
    site: tuple[Store, Release, Release], tmp_path: Path
) -> None:
    store, first, _ = site
    report(store, first, tmp_path / "pages", list)
    hider = create_pseudonymizer(store, Settings())
    report(store, first, tmp_path / "pages", list, hider)
    report(store, first, tmp_path / "whole", list, hider)
    assert bytes_in(tmp_path / "pages" / first.release_id) == bytes_in(tmp_path / "whole" / first.release_id)


def test_fingerprint_covers_table_files_of_the_given_days(site: tuple[Store, Release, Release]) -> None:
    store, first, second = site
    before, after = (fingerprints.Inputs(store, release) for release in (first, second))
    (day,) = {d for d in before._parts["jobs"] if str(d) == "2026-01-03"}
    assert before.fingerprint(tables=["jobs"], days={day}) == after.fingerprint(tables=["jobs"], days={day})
    assert before.fingerprint(tables=["jobs"]) != after.fingerprint(tables=["jobs"])
    assert before.fingerprint() != after.fingerprint()
    assert before.fingerprint("a") != before.fingerprint("b")
    assert before.fingerprint() != fingerprints.Inputs(store, first, "hidden").fingerprint()
    lacking = dataclasses.replace(first, snapshots={})
    assert fingerprints.Inputs(store, lacking).fingerprint() != before.fingerprint()
