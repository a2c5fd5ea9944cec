"""Nights of real logs yield byte-identical tables on every store, catalogue and engine."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from iosig.warehouse.releases import releases
from iosig.warehouse.store.store import Store
from tests.nights import hash_files
from tests.servers import PASSWORD, SeaweedFs, dask, postgresql, seaweedfs, slurm

pytestmark = pytest.mark.long

_ROOT = Path(__file__).resolve().parents[2]
_NAMES = '[filesystems]\nscratch1 = "snx11025"\n\n[time_zones]\nsacct = "UTC"\n'
_EDISON = ("lmt/edison-snx11025_2018-02-09.h5lmt", "jobs/edison-2018-02-09.sacct")
#: inputs of each night
NIGHTS = {"edison": _EDISON, "mixed": (*_EDISON, "tmio", "dxt", "ccr-gpfs")}


def made(url: str, settings: str, inputs: tuple[Path, ...], folder: Path, *how: str) -> dict[str, list[str]]:
    """Land the logs of a night and run it through the command; return the digests of each table's files."""
    folder.mkdir()
    told = folder / "settings.toml"
    told.write_text(_NAMES + settings)
    program = "from iosig.cli import main; main()"
    iosig = [sys.executable, "-c", program, "--warehouse", url, "--settings", str(told)]
    environment = os.environ | {"PYTHONPATH": str(_ROOT)}
    for command in (["land", *map(str, inputs)], ["run", *how]):
        done = subprocess.run([*iosig, *command], cwd=folder, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert PASSWORD not in done.stdout + done.stderr
    store = Store.locate(url)
    return hash_files(store, releases.find(store, None))


#: a warehouse URL and its settings
_Place = Iterator[tuple[str, str]]


@contextmanager
def _processes(folder: Path, *_: object) -> _Place:
    yield str(folder), '[engine]\nexecutor = "processes"\nworker_count = 2\n'


@contextmanager
def _slurm(folder: Path, monkeypatch: pytest.MonkeyPatch, *_: object) -> _Place:
    pytest.importorskip("dask_jobqueue", reason="the extra `dask` is not installed")
    with slurm() as configuration:
        monkeypatch.setenv("SLURM_CONF", str(configuration))
        asked = (
            'partition = "io"\nmemory = "1500MB"\njob_count = 2\nwalltime = "00:20:00"\n'
            'interface = "lo"\nstart_timeout_s = 90'
        )
        yield str(folder), f'[engine]\nexecutor = "slurm"\n\n[slurm]\n{asked}\n'


@contextmanager
def _in_a_store(folder: Path, monkeypatch: pytest.MonkeyPatch, weed: SeaweedFs, catalogue: str) -> _Place:
    """Set up an object store with a catalogue on a server, and two workers that share no folder."""
    for name, value in (weed.environment | {"PGPASSWORD": PASSWORD, "IOSIG_CACHE": str(folder)}).items():
        monkeypatch.setenv(name, value)
    with dask(0) as cluster:
        for number in range(2):
            cluster.add_worker(IOSIG_CACHE=f"{folder}-{number}")
        engine = f'executor = "dask"\nscheduler = "{cluster.address}"'
        yield _url(folder), f"[catalogue]\n{catalogue}\n\n[engine]\n{engine}\n"


def _url(folder: Path) -> str:
    return f"s3://iosig/{folder.parent.name}"


@contextmanager
def _rest(folder: Path, monkeypatch: pytest.MonkeyPatch, weed: SeaweedFs, night: str) -> _Place:
    catalogue = f'kind = "rest"\nuri = "{weed.rest_uri}"\nwarehouse = "{night}"\nlocation = "s3://{night}"'
    with _in_a_store(folder, monkeypatch, weed, catalogue) as opened:
        yield opened


@contextmanager
def _postgresql(folder: Path, monkeypatch: pytest.MonkeyPatch, weed: SeaweedFs, _: str) -> _Place:
    with postgresql() as server:
        catalogue = f'kind = "postgresql"\nuri = "{server.uri}"\nname = "{_url(folder)}"'
        with _in_a_store(folder, monkeypatch, weed, catalogue) as opened:
            yield opened


_Opening = Callable[[Path, pytest.MonkeyPatch, SeaweedFs, str], AbstractContextManager[tuple[str, str]]]
#: name -> function that sets up the warehouse, and options of the run: without `--inline`, the run uses Prefect
PLACES: dict[str, tuple[_Opening, tuple[str, ...]]] = {
    "processes": (_processes, ("--inline",)),
    "rest": (_rest, ("--inline",)),
    "postgresql": (_postgresql, ()),
    "slurm": (_slurm, ("--inline",)),
}


@pytest.fixture(scope="module")
def weed() -> Iterator[SeaweedFs]:
    """An object store with a bucket of tables for each night."""
    with seaweedfs(*NIGHTS) as started:
        yield started


@pytest.fixture(scope="module", params=NIGHTS)
def night(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def inputs(night: str, shared_data: Path) -> tuple[Path, ...]:
    return tuple(shared_data / name for name in NIGHTS[night])


@pytest.fixture(scope="module")
def embedded(inputs: tuple[Path, ...], tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """Digests of a local SQLite warehouse that a single process built."""
    folder = tmp_path_factory.mktemp("embedded")
    return made(str(folder / "warehouse"), '[engine]\nexecutor = "inline"\n', inputs, folder / "of", "--inline")


@pytest.mark.parametrize("place", PLACES)
def test_tables_equal_the_tables_of_a_single_process(
    place: str,
    inputs: tuple[Path, ...],
    embedded: dict[str, list[str]],
    weed: SeaweedFs,
    night: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    opened, how = PLACES[place]
    with opened(tmp_path / "warehouse", monkeypatch, weed, night) as (url, settings):
        found = made(url, settings, inputs, tmp_path / "of", *how)
    assert found == embedded
    assert all(found[name] for name in ("jobs", "filesystem_rates", "job_io", "samples"))
