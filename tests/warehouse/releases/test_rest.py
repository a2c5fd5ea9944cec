"""Test a catalogue on an Iceberg REST server: equal releases for all readers, also after failures."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest
from requests import Session

from iosig.warehouse.contracts import table
from iosig.warehouse.errors import MachineFault, UsageError
from iosig.warehouse.releases import catalogue_choice, expiring, holds, publishing, releases, rest
from iosig.warehouse.releases.locations import metadata_locations
from iosig.warehouse.releases.servers import EMBEDDED, Server
from iosig.warehouse.releases.verifying import verify
from iosig.warehouse.store.store import Store
from tests.servers import PASSWORD, SeaweedFs, seaweedfs
from tests.warehouse.releasing import FIRST, SECOND, built, draft, keys, publish, read, supersede

pytestmark = [pytest.mark.slow, pytest.mark.long]
_JOBS = ["100", "80", "81", "91", "run"]
_BUCKETS = [f"tables{number}" for number in range(24)]


@pytest.fixture(scope="module")
def weed() -> Iterator[SeaweedFs]:
    with seaweedfs(*_BUCKETS) as started:
        yield started


@pytest.fixture(scope="module")
def free_buckets() -> list[str]:
    return list(_BUCKETS)


@pytest.fixture
def wanted(weed: SeaweedFs, free_buckets: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Server:
    """Return a separate catalogue for each test."""
    for name, value in (weed.environment | {"IOSIG_CACHE": str(tmp_path / "cache")}).items():
        monkeypatch.setenv(name, value)
    if weed.process is None:
        weed.start()
    bucket = free_buckets.pop()
    return Server("rest", weed.rest_uri, "iosig", bucket, f"s3://{bucket}")


@pytest.fixture
def served(wanted: Server) -> Store:
    """Create a warehouse in the object store with its catalogue on the server, and a release."""
    store = Store.locate(f"s3://iosig/{wanted.warehouse}")
    catalogue_choice.agree(store, wanted)
    publish(store, "first", FIRST, inputs=("l1", "l2"))
    return store


def test_publishing_with_server_equals_publishing_without(served: Store, wanted: Server) -> None:
    second = publish(served, "second", SECOND, inputs=("l3",))
    assert keys(served, second, "jobs", "job_id") == _JOBS
    assert [release.release_id for release in releases.history(served)] == ["2018-02-09-first", "2018-02-09-second"]
    assert not verify(served, is_all=True)
    assert metadata_locations(served)["jobs"].startswith(f"{wanted.location}/tables/jobs/metadata/")
    assert PASSWORD not in (served.files.content("catalogue.json") or b"").decode()


def test_rollback_superseding_and_expiry_use_the_server(served: Store) -> None:
    second = publish(served, "second", SECOND)
    back = holds.roll_back(served, "2018-02-09-first")[0]
    assert keys(served, back, "jobs", "job_id") == ["80", "81", "90", "run"]
    publish(served, "third", SECOND)
    instead = supersede(served, second, "instead", {"jobs": {9: "job_id \n 92"}})
    assert keys(served, instead, "jobs", "job_id") == ["100", "80", "81", "92", "run"]
    assert len(expiring.expire(served, 2)) == 2
    assert keys(served, releases.find(served, None), "jobs", "job_id") == _JOBS
    assert [release.release_id for release in releases.list_readable(served)] == [back.release_id, "2018-02-09-third"]
    assert not verify(served, is_all=True)


def test_other_readers_read_equal_rows_from_server(served: Store, wanted: Server, weed: SeaweedFs) -> None:
    from obstore.fsspec import FsspecStore
    from pyiceberg.catalog.rest import RestCatalog

    second = publish(served, "second", SECOND)
    told = {"s3.endpoint": weed.environment["AWS_ENDPOINT_URL"], "s3.region": "us-east-1"}
    own = {"uri": wanted.uri, "warehouse": wanted.warehouse, "credential": f"tester:{PASSWORD}"}
    reader = RestCatalog("reader", **own, **told, **{"oauth2-server-uri": f"{wanted.uri}/v1/oauth/tokens"})
    table = reader.load_table("published.jobs")
    assert table.location() == f"{wanted.location}/tables/jobs"
    ours = read(served, second, "jobs")
    assert pl.DataFrame(table.scan().to_arrow()).sort("job_id").select(ours.columns).equals(ours)
    assert pl.scan_iceberg(table).collect().sort("job_id").select(ours.columns).equals(ours)
    connection = duckdb.connect()
    connection.register_filesystem(FsspecStore("s3", client_options={"allow_http": True}))
    paths = [task.file.file_path for task in table.scan().plan_files()]
    found = connection.read_parquet(paths).select("job_id").order("job_id").fetchall()
    assert [job_id for (job_id,) in found] == ours["job_id"].to_list()
    first = table.snapshot_by_name("2018-02-09-first")
    assert first is not None, "each release is a tag"
    before = table.scan(snapshot_id=first.snapshot_id).to_arrow()["job_id"].to_pylist()
    assert sorted(before) == ["80", "81", "90", "run"]


def test_each_warehouse_has_a_separate_catalogue(served: Store, wanted: Server, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"belongs to s3://.*Each warehouse needs its own catalogue"):
        catalogue_choice.agree(Store.locate("s3://iosig/another"), wanted)
    with pytest.raises(UsageError, match="needs a warehouse in an object store"):
        catalogue_choice.agree(Store(tmp_path / "folder"), wanted)
    with pytest.raises(UsageError, match="cannot change to or from one"):
        catalogue_choice.take_over(served, replace(wanted, kind="postgresql", uri="postgresql://nowhere/iosig"))
    with pytest.raises(UsageError, match="cannot change to or from one"):
        catalogue_choice.take_over(served, EMBEDDED)


def test_authentication_failure_is_reported_without_the_secret(served: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYICEBERG_CATALOG__IOSIG__CREDENTIAL", "tester:a wrong one")
    with pytest.raises(MachineFault, match=r"does not answer: .*[Ii]nvalid client") as told:
        releases.history(served)
    assert "a wrong one" not in str(told.value)


@pytest.mark.parametrize("is_committed", [True, False])
def test_lost_commit_response_is_resolved(served: Store, monkeypatch: pytest.MonkeyPatch, is_committed: bool) -> None:
    send = rest.RestTables._is_sent_together

    def lose(self: rest.RestTables, changes: Any) -> bool:
        if is_committed:
            send(self, changes)
        raise ConnectionError("connection reset by peer")

    with monkeypatch.context() as patch:
        patch.setattr(rest.RestTables, "_is_sent_together", lose)
        if is_committed:
            assert publish(served, "second", SECOND).release_id == "2018-02-09-second"
        else:
            with pytest.raises((OSError, MachineFault), match="connection reset"):
                publish(served, "second", SECOND)
    assert len(releases.history(served)) == 1 + is_committed
    second = publish(served, "second", SECOND)
    assert keys(served, second, "jobs", "job_id") == _JOBS
    assert len(releases.history(served)) == 2
    assert not verify(served, is_all=True)


@pytest.mark.parametrize("turn", range(3))
@pytest.mark.parametrize("is_together", [True, False])
def test_second_of_two_concurrent_writers_is_refused(
    served: Store, monkeypatch: pytest.MonkeyPatch, turn: int, is_together: bool
) -> None:
    if not is_together:
        monkeypatch.setattr(rest.RestTables, "_is_sent_together", lambda *_: False)
    first = releases.current(served)
    start, told = threading.Barrier(2), []
    names = (f"one{turn}", f"two{turn}")
    files = {name: {"jobs": built(served.builds / name, table("jobs"), SECOND["jobs"])} for name in names}

    def write(name: str) -> None:
        start.wait()
        try:
            publishing.publish(served, draft(name, on=first), files[name])
        except MachineFault as fault:
            told.append(str(fault))

    writers = [threading.Thread(target=write, args=(name,)) for name in names]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    history = releases.history(served)
    assert len(told) == 1
    assert "nother writer" in told[0]
    assert len(history) == 2
    assert keys(served, history[-1], "jobs", "job_id") == _JOBS
    last = publish(served, "last", {"jobs": {9: "job_id \n 93"}})
    assert keys(served, last, "jobs", "job_id") == ["100", "80", "81", "93", "run"]
    assert not verify(served, is_all=True)


@pytest.mark.parametrize("moment", [1, 9, 20, 30])
def test_publishing_killed_between_sequential_commits_is_recoverable(
    served: Store, monkeypatch: pytest.MonkeyPatch, moment: int
) -> None:
    left, post = moment, Session.post

    def killed(self: Session, url: Any, *arguments: Any, **named: Any) -> Any:
        nonlocal left
        left -= "/tables/" in str(url)
        if not left:
            raise ConnectionError("killed")
        return post(self, url, *arguments, **named)

    with monkeypatch.context() as patch:
        patch.setattr(rest.RestTables, "_is_sent_together", lambda *_: False)
        patch.setattr(Session, "post", killed)
        with pytest.raises((OSError, MachineFault), match="killed"):
            publish(served, "second", {"jobs": {9: "job_id \n 99"}, "applications": {None: "application_id \n c/z/3"}})
    history = releases.history(served)
    assert [release.release_id for release in history] == ["2018-02-09-first"]
    assert keys(served, history[0], "jobs", "job_id") == ["80", "81", "90", "run"]
    third = publish(served, "third", SECOND)
    assert keys(served, third, "jobs", "job_id") == _JOBS
    assert keys(served, third, "applications", "application_id") == ["a/x/1", "b/y/2"]
    assert not verify(served, is_all=True)


@pytest.mark.parametrize("moment", range(5))
def test_publishing_is_atomic_when_server_is_killed(
    served: Store, weed: SeaweedFs, monkeypatch: pytest.MonkeyPatch, moment: int
) -> None:
    from iosig.warehouse.releases import snapshots

    done, fatal = 0, max(1, len(releases.list_published_tables()) * moment // 4)
    tagged = snapshots.make_tag_update

    def counted(*arguments: Any, **named: Any) -> Any:
        nonlocal done
        done += 1
        if done == fatal:
            weed.stop()
        return tagged(*arguments, **named)

    with monkeypatch.context() as patch:
        patch.setattr(snapshots, "make_tag_update", counted)
        with pytest.raises(Exception, match=r"\w"):
            publish(served, "second", SECOND)
    weed.start()
    assert [release.release_id for release in releases.history(served)] == ["2018-02-09-first"]
    assert keys(served, publish(served, "third", SECOND), "jobs", "job_id") == _JOBS
    assert not verify(served, is_all=True)
