"""A warehouse in an object store with its catalogue on a server holds the same release, whichever engine runs."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import polars as pl
import pytest

from iosig.flows import executors, nightly
from iosig.flows.faults import machine_fault
from iosig.settings.model import CatalogueSettings, EngineSettings, Settings
from iosig.warehouse.errors import MachineFault, NothingToDo, UsageError
from iosig.warehouse.releases import releases
from iosig.warehouse.releases.reading import open_release
from iosig.warehouse.releases.releases import Release
from iosig.warehouse.releases.verifying import verify
from iosig.warehouse.store import landing, objects
from iosig.warehouse.store.store import Store, lock_warehouse
from tests.nights import Cli, Night, hash_files, land_files, run_night, write_small_site
from tests.servers import PASSWORD, PostgreSql, SeaweedFs, dask, postgresql, seaweedfs

pytestmark = pytest.mark.long


_TABLES = "tables"


@pytest.fixture(scope="module")
def weed() -> Iterator[SeaweedFs]:
    with seaweedfs(_TABLES) as started:
        yield started


@pytest.fixture(scope="module")
def server() -> Iterator[PostgreSql]:
    with postgresql() as started:
        yield started


@pytest.fixture
def environment(weed: SeaweedFs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Environment with the addresses of the servers and credentials."""
    told = weed.environment | {"PGPASSWORD": PASSWORD, "IOSIG_CACHE": str(tmp_path / "cache")}
    for name, value in told.items():
        monkeypatch.setenv(name, value)
    if weed.process is None:
        weed.start()
    return told


@pytest.fixture
def store(environment: dict[str, str], tmp_path: Path) -> Store:
    """A warehouse in the object store, into which the small site is landed."""
    name = hashlib.sha256(str(tmp_path).encode()).hexdigest()[:8]
    made = Store.locate(f"s3://iosig/{name}")
    write_small_site(tmp_path / "site")
    land_files(made, tmp_path / "site")
    return made


@pytest.fixture
def catalogue(server: PostgreSql, store: Store) -> CatalogueSettings:
    return CatalogueSettings(kind="postgresql", uri=server.uri, name=str(store.url))


def run(store: Store, settings: Settings) -> Release:
    with executors.open_engine(settings, store.root) as engine:
        return run_night(store, settings, engine=engine)


def test_release_equals_that_of_a_folder_and_is_read_without_copies(
    store: Store, catalogue: CatalogueSettings, checked_night: Night, tmp_path: Path
) -> None:
    settings = Settings(catalogue=catalogue)
    with pytest.raises(UsageError, match="needs a catalogue on a server"):
        run(store, Settings())
    release = run(store, settings)
    with pytest.raises(NothingToDo):
        run(store, settings)
    url = str(store.url)
    shutil.rmtree(tmp_path / "cache")
    again = Store.locate(url)
    with open_release(again, release, "from jobs") as connection:
        assert connection.sql("select count(*) from jobs").fetchall() == [(4,)]
        with pytest.raises(Exception, match="disabled by configuration"):
            connection.sql(f"from read_parquet('{url}/ledger.json')").fetchall()
    assert not list((tmp_path / "cache").rglob("*.parquet")), "nothing was copied"
    assert hash_files(again, release) == hash_files(checked_night.store, checked_night.release)
    assert not verify(again, is_all=True)
    assert not again.files.matching("builds/*/*"), "what was built is gone"
    shown = json.loads(again.files.content("latest.json") or b"")
    jobs = [url for place, url in shown["files"].items() if place.startswith("jobs/")]
    assert pl.read_parquet(jobs).height == 4
    assert again.has("data_docs/index.html")


def test_other_readers_see_the_same_rows(
    store: Store, catalogue: CatalogueSettings, environment: dict[str, str]
) -> None:
    from pyiceberg.catalog.sql import SqlCatalog

    release = run(store, Settings(catalogue=catalogue))
    uri = catalogue.uri.replace("postgresql://", "postgresql+psycopg2://") if catalogue.uri else ""
    told = {"s3.endpoint": environment["AWS_ENDPOINT_URL"], "s3.region": environment["AWS_REGION"]}
    table = SqlCatalog(catalogue.name, uri=uri, init_catalog_tables="false", **told).load_table("published.jobs")
    assert table.location() == f"{store.url}/tables/jobs"
    of_iceberg = pl.DataFrame(table.scan().to_arrow())
    of_polars = pl.scan_iceberg(table).collect()
    with open_release(store, release) as connection:
        ours = connection.sql("from jobs").pl()
    assert sorted(of_iceberg["job_id"]) == sorted(of_polars["job_id"]) == sorted(ours["job_id"])
    assert table.snapshot_by_name(release.release_id) is not None, "each release is a tag"


def test_release_with_rest_catalogue_equals_that_of_a_folder(
    store: Store, weed: SeaweedFs, checked_night: Night, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = tmp_path / "settings.toml"
    told.write_text(
        f'[catalogue]\nkind = "rest"\nuri = "{weed.rest_uri}"\nwarehouse = "{_TABLES}"\nlocation = "s3://{_TABLES}"\n'
    )
    monkeypatch.setenv("IOSIG_WAREHOUSE", str(store.url))
    code, out, err = cli("--settings", str(told), "run", "--json")
    assert code == 0, err
    assert cli("--settings", str(told), "run", "--strict")[0] == 5, "there is nothing to do"
    release = releases.find(store, None)
    assert hash_files(store, release) == hash_files(checked_night.store, checked_night.release)
    shutil.rmtree(tmp_path / "cache")
    assert cli("sql", "select count(*) as jobs from jobs", "--format", "csv")[1].split() == ['"jobs"', "4"]
    assert not list((tmp_path / "cache").rglob("*.parquet")), "nothing was copied"
    shown = json.loads(store.files.content("latest.json") or b"")
    jobs = [url for place, url in shown["files"].items() if place.startswith("jobs/")]
    assert all(url.startswith(f"s3://{_TABLES}/tables/jobs/data/") for url in jobs)
    assert pl.read_parquet(jobs).height == 4
    assert cli("verify")[0] == 0
    assert PASSWORD not in out + err


def test_release_by_workers_without_shared_folder_is_the_same(
    store: Store, catalogue: CatalogueSettings, checked_night: Night, tmp_path: Path
) -> None:
    with dask(0) as cluster:
        for number in range(2):
            cluster.add_worker(IOSIG_CACHE=str(tmp_path / f"cache-{number}"))
        settings = Settings(catalogue=catalogue, engine=EngineSettings(executor="dask", scheduler=cluster.address))
        _wait_for(cluster.address, 2)
        release = run(store, settings)
    assert hash_files(store, release) == hash_files(checked_night.store, checked_night.release)
    assert all(list((tmp_path / f"cache-{number}").iterdir()) for number in range(2)), "both had a part in it"


def _wait_for(address: str, count: int) -> None:
    from distributed import Client

    with Client(address, set_as_default=False) as client:
        client.wait_for_workers(count, timeout=60)


def test_commands_accept_a_url_as_warehouse(
    store: Store, catalogue: CatalogueSettings, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = tmp_path / "settings.toml"
    told.write_text(f'[catalogue]\nkind = "postgresql"\nuri = "{catalogue.uri}"\nname = "{catalogue.name}"\n')
    monkeypatch.setenv("IOSIG_WAREHOUSE", str(store.url))
    code, out, err = cli("--settings", str(told), "run", "--json")
    assert code == 0, err
    assert cli("sql", "select count(*) as jobs from jobs", "--format", "csv")[1].split() == ['"jobs"', "4"]
    assert cli("export", "--all", "--output", str(tmp_path / "out"))[0] == 0
    assert pl.read_parquet(tmp_path / "out" / "jobs" / "**" / "*.parquet").height == 4
    assert cli("verify")[0] == 0
    assert PASSWORD not in out + err


def test_settings_forget_and_predict_work_in_an_object_store(
    store: Store, catalogue: CatalogueSettings, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = f'[catalogue]\nkind = "postgresql"\nuri = "{catalogue.uri}"\nname = "{catalogue.name}"\n'
    store.files.put("iosig.toml", told.encode())
    log = (tmp_path / "site" / "jobs.sacct").read_text().splitlines()
    mine = [line.replace("|ann|", "|zoequill|").replace("10", "40", 1) for line in log[1:]]
    (tmp_path / "more.sacct").write_text("\n".join([log[0], *mine]) + "\n")
    url = str(store.url)
    monkeypatch.setenv("IOSIG_WAREHOUSE", url)
    assert cli("run", "--json")[0] == 0, "the settings that lie in the store say which catalogue"
    assert cli("land", str(tmp_path / "more.sacct"))[0] == 0
    assert cli("run")[0] == 0
    count = ("sql", "select count(*) as jobs from jobs where \"user\" = 'zoequill'", "--format", "csv")
    assert cli(*count)[1].split() == ['"jobs"', "4"]
    # each command must find its data in the store
    shutil.rmtree(tmp_path / "cache")
    code, out, err = cli("predict", "--job", "102", "--json")
    assert code in (0, 5), err
    code, out, err = cli("forget", "--user", "zoequill", "--json")
    assert code == 0, err
    assert json.loads(out)["is_done"]
    shutil.rmtree(tmp_path / "cache")
    again = Store.locate(url)
    assert cli(*count)[1].split() == ['"jobs"', "0"]
    assert cli("status", "--json")[0] in (0, 7)
    assert cli("verify", "--all")[0] == 0
    left = [name for name in again.files.matching("landed/*/*") if b"zoequill" in again.local(name).read_bytes()]
    assert not left
    last = releases.files_of(again, releases.find(again, None))["jobs"]
    assert pl.read_parquet([again.here(path) for path in last])["user"].to_list() == ["ann"] * 4


def test_lock_is_exclusive_and_expires_after_a_crash(
    store: Store, catalogue: CatalogueSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(objects, "LEASE_S", 1.5)
    with lock_warehouse(store), pytest.raises(UsageError, match="Another run is writing"), lock_warehouse(store):
        pass
    # a killed writer leaves a lease that is no longer renewed
    left = json.dumps({"id": "gone", "host": "elsewhere", "process": 1, "until": time.time() + 1.0}).encode()
    store.files.put("lock", left)
    with pytest.raises(UsageError, match="Another run is writing"), lock_warehouse(store):
        pass
    with lock_warehouse(store, wait_s=10.0):
        assert store.files.content("lock") != left


@pytest.mark.parametrize("moment", [2, 12, 23])
def test_stalled_store_is_retried_or_reported(
    store: Store,
    catalogue: CatalogueSettings,
    checked_night: Night,
    weed: SeaweedFs,
    moment: int,
) -> None:
    settings, left = Settings(catalogue=catalogue, engine=EngineSettings(executor="inline")), moment
    waking: list[threading.Timer] = []

    def at_the_moment(*_: object) -> None:
        nonlocal left
        left -= 1
        if not left:
            waking.append(weed.stand_still(30.0))

    broken: Exception | None = None
    try:
        nightly.run_inline(store, settings, at_the_moment)
    except Exception as error:  # libraries raise exceptions of various types
        broken = error
    waking[0].join()
    if broken is not None:
        assert machine_fault(broken, store.root) is not None, "it is told in a sentence"
        with suppress(NothingToDo):
            run(store, settings)
    (release,) = releases.history(store)
    assert hash_files(store, release) == hash_files(checked_night.store, checked_night.release)
    assert not verify(store, is_all=True)


@pytest.mark.parametrize("seconds", [0, 60])
def test_concurrent_night_waits_for_the_lock_or_is_refused(
    store: Store,
    catalogue: CatalogueSettings,
    checked_night: Night,
    environment: dict[str, str],
    tmp_path: Path,
    seconds: int,
) -> None:
    told = tmp_path / "settings.toml"
    told.write_text(f'[catalogue]\nkind = "postgresql"\nuri = "{catalogue.uri}"\nname = "{catalogue.name}"\n')
    command = [sys.executable, "-c", "from iosig.cli import main; main()", "--warehouse", str(store.url)]
    nights = [
        subprocess.Popen(
            [
                *_on_a_machine_called(f"night{number}"),
                *command,
                "--settings",
                told,
                "run",
                "--lock-timeout",
                str(seconds),
            ],
            env=os.environ | environment | {"IOSIG_CACHE": str(tmp_path / f"cache-{number}")},
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
        )
        for number in range(2)
    ]
    said = [night.communicate()[1] for night in nights]
    assert sorted(night.returncode for night in nights) == ([0, 0] if seconds else [0, 2]), said
    if seconds:
        assert sum("Nothing new since release" in text for text in said) == 1
    else:
        (loser,) = (text for night, text in zip(nights, said, strict=True) if night.returncode)
        assert "Another run is writing to s3://" in loser
        assert re.search(r"process \d+ on night[01]", loser) or not _on_a_machine_called("x")
    (release,) = releases.history(store)
    assert hash_files(store, release) == hash_files(checked_night.store, checked_night.release)
    assert not verify(store, is_all=True)


def _on_a_machine_called(name: str) -> list[str]:
    """Return the command prefix for another host name, or nothing without the permission for it."""
    start = ["unshare", "--uts", "sh", "-c", 'hostname "$0" && exec "$@"', name]
    try:
        return start if subprocess.run([*start, "true"], capture_output=True, check=False).returncode == 0 else []
    except OSError:
        return []


@pytest.mark.parametrize("moment", range(1, 24, 3))
def test_store_killed_at_any_moment_keeps_the_previous_state(
    store: Store,
    catalogue: CatalogueSettings,
    checked_night: Night,
    weed: SeaweedFs,
    monkeypatch: pytest.MonkeyPatch,
    moment: int,
) -> None:
    monkeypatch.setattr(objects, "LEASE_S", 2.0)
    settings, left = Settings(catalogue=catalogue, engine=EngineSettings(executor="inline")), moment

    def at_the_moment(*_: object) -> None:
        nonlocal left
        left -= 1
        if not left:
            weed.stop()

    with pytest.raises(Exception, match=r"\w") as told:
        nightly.run_inline(store, settings, at_the_moment)
    assert not isinstance(told.value, AssertionError)
    weed.start()
    time.sleep(2.5)
    assert not releases.history(store)
    release = run(store, settings)
    assert hash_files(store, release) == hash_files(checked_night.store, checked_night.release)
    assert not verify(store, is_all=True)


def test_files_of_a_killed_landing_are_landed_again(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "late.sacct").write_text((tmp_path / "site" / "jobs.sacct").read_text().replace("|ann|", "|bob|"))
    upload = objects.Objects._upload

    def killed(self: objects.Objects, path: Path, name: str, mode: object = "overwrite") -> None:
        if name.endswith(landing.MANIFEST_NAME):
            raise MachineFault("killed")
        upload(self, path, name, mode)

    with monkeypatch.context() as patch:
        patch.setattr(objects.Objects, "_upload", killed)
        with pytest.raises(MachineFault):
            land_files(store, tmp_path / "late.sacct")
    assert len(landing.ledger(store)) == 2
    land_files(store, tmp_path / "late.sacct")
    assert len(landing.ledger(store)) == 3
