from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from iosig.warehouse.errors import MachineFault, UsageError
from iosig.warehouse.releases import catalogue_choice, expiring, holds, publishing, releases, servers
from iosig.warehouse.releases.locations import is_moved, metadata_locations
from iosig.warehouse.releases.relocating import relocate
from iosig.warehouse.releases.repairing import repair
from iosig.warehouse.releases.servers import EMBEDDED, Server
from iosig.warehouse.releases.verifying import verify
from iosig.warehouse.store.store import Store
from tests.hostile_servers import tcp_server
from tests.servers import PASSWORD, PostgreSql, postgresql
from tests.warehouse.releasing import FIRST, SECOND, draft, keys, publish


def test_embedded_catalogue_needs_no_configuration_file(tmp_path: Path) -> None:
    store = Store(tmp_path)
    catalogue_choice.agree(store, None)
    catalogue_choice.agree(store, EMBEDDED)
    assert servers.get_server(store) == EMBEDDED
    assert not list(tmp_path.iterdir())


def test_missing_server_library_is_reported_with_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match="uv sync --extra postgresql"):
        catalogue_choice.agree(Store(tmp_path), Server("postgresql", "postgresql://nowhere/iosig"))


def test_invalid_configuration_file_raises_machine_fault(tmp_path: Path) -> None:
    (tmp_path / "catalogue.json").write_text('{"kind": "postgresql"}')
    with pytest.raises(MachineFault, match="iosig repair"):
        servers.get_server(Store(tmp_path))


def test_server_address_has_a_connection_timeout() -> None:
    assert Server("postgresql", "postgresql://db/iosig").address.endswith("iosig?connect_timeout=10")
    own = "postgresql://db/iosig?sslmode=require&connect_timeout=3"
    assert Server("postgresql", own).address == own
    assert Server("postgresql", "postgresql://db/iosig?a=b").address.endswith("?a=b&connect_timeout=10")


@pytest.fixture(scope="module")
def server() -> Iterator[PostgreSql]:
    """Start a PostgreSQL server that all tests of this module share."""
    with postgresql() as started:
        yield started


@pytest.fixture
def wanted(server: PostgreSql, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Server:
    """Return a separate catalogue on the server for each test."""
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    if server.process is None:
        server.start()
    return Server("postgresql", server.uri, request.node.name[-60:])


@pytest.fixture
def served(wanted: Server, tmp_path: Path) -> Store:
    """Create a warehouse with a catalogue on a server, and a release."""
    store = Store(tmp_path / "served")
    catalogue_choice.agree(store, wanted)
    publish(store, "first", FIRST, inputs=("l1", "l2"))
    return store


@pytest.mark.slow
def test_publishing_with_server_equals_publishing_without(served: Store) -> None:
    second = publish(served, "second", SECOND, inputs=("l3",))
    assert not served.catalogue.exists()
    assert keys(served, second, "jobs", "job_id") == ["100", "80", "81", "91", "run"]
    assert [release.release_id for release in releases.history(served)] == ["2018-02-09-first", "2018-02-09-second"]
    assert not verify(served, is_all=True)
    assert PASSWORD not in (served.root / "catalogue.json").read_text()


@pytest.mark.slow
@pytest.mark.long
def test_rollback_expiry_and_repair_use_the_server(served: Store, wanted: Server) -> None:
    publish(served, "second", SECOND)
    back = holds.roll_back(served, "2018-02-09-first")[0]
    assert keys(served, back, "jobs", "job_id") == ["80", "81", "90", "run"]
    publish(served, "third", SECOND)
    assert len(expiring.expire(served, 2)) == 2
    with servers.begin_transaction(served, wanted) as connection:
        connection.exec_driver_sql(f"delete from iceberg_tables where catalog_name = '{wanted.name}'")
    with pytest.raises(MachineFault, match="names no tables, although releases exist"):
        releases.history(served)
    repair(served)
    assert [release.release_id for release in releases.list_readable(served)][-1] == "2018-02-09-third"
    assert not verify(served, is_all=True)


@pytest.mark.slow
@pytest.mark.long
def test_warehouse_moves_to_a_server_and_back(two: Store, wanted: Server) -> None:
    relocate(two)
    known, history = metadata_locations(two), releases.history(two)
    with pytest.raises(UsageError, match="iosig repair"):
        catalogue_choice.agree(two, wanted)
    assert catalogue_choice.take_over(two, wanted)
    assert not catalogue_choice.take_over(two, wanted)
    assert metadata_locations(two) == known
    assert not two.catalogue.exists()
    third = publish(two, "third", SECOND)
    assert [*history, third] == releases.history(two)
    assert catalogue_choice.take_over(two, EMBEDDED)
    assert [*history, third] == releases.history(two)
    assert not servers.locations_on(wanted), "nothing of it is left there"
    assert not (two.root / "catalogue.json").exists()
    assert not verify(two, is_all=True)


@pytest.mark.slow
@pytest.mark.long
def test_copy_does_not_take_over_the_catalogue(served: Store, wanted: Server, tmp_path: Path) -> None:
    copy = Store(tmp_path / "copy")
    shutil.copytree(served.root, copy.root, symlinks=True)
    with pytest.raises(UsageError, match="set another catalogue"):
        publish(copy, "second", SECOND)
    publish(served, "second", SECOND)
    own = Server("postgresql", wanted.uri, "copy's own")
    assert catalogue_choice.take_over(copy, own)
    assert not is_moved(copy)
    assert [release.release_id for release in releases.history(copy)] == ["2018-02-09-first"]
    assert keys(copy, publish(copy, "third", SECOND), "jobs", "job_id") == ["100", "80", "81", "91", "run"]
    assert len(releases.history(served)) == 2
    assert not verify(copy, is_all=True)


@pytest.mark.slow
@pytest.mark.long
def test_moved_warehouse_keeps_its_catalogue_on_request(served: Store, tmp_path: Path) -> None:
    moved = Store(served.root.rename(tmp_path / "moved"))
    assert relocate(moved, is_asked=True)
    assert keys(moved, publish(moved, "second", SECOND), "jobs", "job_id") == ["100", "80", "81", "91", "run"]


@pytest.mark.slow
@pytest.mark.long
def test_two_warehouses_cannot_share_a_catalogue(served: Store, wanted: Server, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"Set another catalogue\.name"):
        catalogue_choice.agree(Store(tmp_path / "other"), wanted)


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("turn", range(5))
def test_second_of_two_concurrent_writers_is_refused(served: Store, turn: int) -> None:
    first = releases.current(served)
    together, outcomes = threading.Barrier(2), {}

    def write(name: str) -> None:
        files = {"jobs": {}}
        together.wait()
        try:
            outcomes[name] = publishing.publish(served, draft(name, on=first), files)
        except MachineFault as fault:
            outcomes[name] = fault

    writers = [threading.Thread(target=write, args=(name,)) for name in ("one", "other")]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    won = [name for name, outcome in outcomes.items() if isinstance(outcome, releases.Release)]
    assert len(won) == 1, outcomes
    assert "Run again" in str(next(outcome for name, outcome in outcomes.items() if name not in won))
    assert [release.release_id for release in releases.history(served)][1:] == [f"2018-02-09-{won[0]}"]
    assert not verify(served, is_all=True)


@pytest.mark.slow
@pytest.mark.parametrize("is_committed", [True, pytest.param(False, marks=pytest.mark.long)])
def test_lost_commit_response_is_resolved(two: Store, monkeypatch: pytest.MonkeyPatch, is_committed: bool) -> None:
    commit = publishing._commit

    def lose(*arguments: Any) -> None:
        if is_committed:
            commit(*arguments)
        raise OSError("connection reset by peer")

    monkeypatch.setattr(publishing, "_commit", lose)
    if is_committed:
        assert publish(two, "third", SECOND).release_id == "2018-02-09-third"
    else:
        with pytest.raises(OSError, match="connection reset"):
            publish(two, "third", SECOND)
    assert len(releases.history(two)) == 2 + is_committed
    assert not verify(two, is_all=True)


@pytest.mark.slow
@pytest.mark.parametrize("moment", [2, *(pytest.param(other, marks=pytest.mark.long) for other in (0, 1, 3))])
def test_publishing_is_atomic_when_server_is_killed(
    served: Store, server: PostgreSql, monkeypatch: pytest.MonkeyPatch, moment: int
) -> None:
    from iosig.warehouse.releases import snapshots

    commits = 0
    tagged = snapshots.make_tag_update
    fatal = max(1, len(releases.list_published_tables()) * moment // 3)

    def counted(*arguments: Any, **named: Any) -> Any:
        nonlocal commits
        commits += 1
        if commits == fatal:
            server.stop()
        return tagged(*arguments, **named)

    with monkeypatch.context() as patch:
        patch.setattr(snapshots, "make_tag_update", counted)
        with pytest.raises(Exception, match=r"connect|server|terminat|closed"):
            publish(served, "second", SECOND)
    assert commits >= fatal
    with pytest.raises(MachineFault, match="does not answer"):
        releases.history(served)
    server.start()
    assert [release.release_id for release in releases.history(served)] == ["2018-02-09-first"]
    assert keys(served, publish(served, "third", SECOND), "jobs", "job_id") == ["100", "80", "81", "91", "run"]
    assert not verify(served, is_all=True)


@pytest.mark.slow
@pytest.mark.long
def test_commit_before_server_was_killed_is_recognized(
    served: Store, server: PostgreSql, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = publishing._commit

    def and_killed(*arguments: Any) -> None:
        commit(*arguments)
        server.stop()
        raise OSError("connection reset by peer")

    with monkeypatch.context() as patch:
        patch.setattr(publishing, "_commit", and_killed)
        with pytest.raises(OSError, match="connection reset"):
            publish(served, "second", SECOND)
    server.start()
    assert [release.release_id for release in releases.history(served)] == ["2018-02-09-first", "2018-02-09-second"]
    second = publish(served, "second", SECOND)
    assert keys(served, second, "jobs", "job_id") == ["100", "80", "81", "91", "run"]
    assert len(releases.history(served)) == 2, "it is completed, not made again"
    assert not verify(served, is_all=True)


@pytest.mark.extra
@pytest.mark.parametrize("drip", [None, b"R"])
def test_silent_or_dripping_server_is_reported(drip: bytes | None) -> None:
    pytest.importorskip("psycopg2", reason="the extra `postgresql` is not installed")
    begun_s = time.monotonic()
    # the start of a message of 16 MB: an authentication request that never ends
    with tcp_server(b"R\x00\xff\xff\xff" if drip else b"", drip) as port:
        silent = Server("postgresql", f"postgresql://ann@127.0.0.1:{port}/iosig?connect_timeout=1&sslmode=disable")
        with pytest.raises(MachineFault, match=r"does not answer: (no complete answer within 1 s|.*authentication)"):
            servers.locations_on(silent)
    assert time.monotonic() - begun_s < 10


def test_statement_timeout_raises_machine_fault(
    server: PostgreSql, wanted: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sqlalchemy import text

    monkeypatch.setattr(servers, "_STATEMENT_TIMEOUT_S", 0.5)
    with (
        pytest.raises(MachineFault, match=r"no complete answer within 0\.5 s"),
        servers.begin_transaction(Store(""), wanted) as c,
    ):
        c.execute(text("select pg_sleep(30)"))
