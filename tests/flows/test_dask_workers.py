"""Dask workers build the same tables, retry lost items, name failing items, and refuse other programs."""

from __future__ import annotations

import json
import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import as_completed
from pathlib import Path
from typing import Any

import pytest

import iosig.streams.landing
from iosig.flows import dask_workers, executors, nightly
from iosig.flows.steps.items import ItemResult, StepContext, WorkItem
from iosig.settings.model import EngineSettings, Settings, SlurmSettings, load
from iosig.streams.landing import ReadOptions, land_paths
from iosig.warehouse.errors import MachineFault, UsageError
from iosig.warehouse.processes import WorkerLost
from iosig.warehouse.releases import releases
from iosig.warehouse.store.store import Store
from tests.nights import Night, hash_files, run_night, write_small_site
from tests.servers import Dask, dask, free_port


@pytest.fixture(scope="module")
def cluster() -> Iterator[Dask]:
    """A scheduler and two workers, shared by all tests of this file."""
    with dask(2) as started:
        yield started


@pytest.fixture
def settings(cluster: Dask) -> Settings:
    return Settings(engine=EngineSettings(executor="dask", scheduler=cluster.address))


def worked(context: StepContext) -> int:
    """Behave as the item's name says."""
    place = context.root / context.item.name
    if context.item.name == "poison":
        os._exit(9)
    if context.item.name == "faulty":
        raise ValueError("no such thing")
    if context.item.name == "warning":
        logging.getLogger("flows.of_a_piece").warning("from afar")
    if context.item.name.startswith("slow"):
        place.with_suffix(".begun").write_text(str(os.getpid()))
        time.sleep(2.0 if place.with_suffix(".once").exists() else 600.0)
    return place.write_text(str(os.getpid()))


def items(*names: str) -> list[WorkItem]:
    function = f"{worked.__module__}:{worked.__name__}"
    return [WorkItem(name, "step", function, (), (), (), Settings(), "built", f"{name}.json") for name in names]


def results(engine: executors.Engine, root: Path, *names: str) -> Iterator[ItemResult]:
    """Execute items, yield results as they complete, and raise the first failure after all have ended."""
    failures = []
    for future in as_completed([engine.submit(item, root) for item in items(*names)]):
        if (error := future.exception()) is None:
            yield future.result()
        else:
            failures.append(error)
    if failures:
        raise failures[0]


# ---- without workers


def test_missing_dask_names_the_command_that_installs_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    engine = EngineSettings(executor="dask", scheduler="tcp://127.0.0.1:1")
    with (
        pytest.raises(UsageError, match="uv sync --extra dask"),
        executors.open_engine(Settings(engine=engine), tmp_path),
    ):
        pass


@pytest.mark.extra
def test_missing_slurm_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("dask_jobqueue", reason="the extra `dask` is not installed")
    monkeypatch.setenv("PATH", str(tmp_path))
    with (
        pytest.raises(UsageError, match="sbatch"),
        executors.open_engine(Settings(engine=EngineSettings(executor="slurm")), tmp_path),
    ):
        pass


def test_dask_executor_and_scheduler_require_each_other(tmp_path: Path) -> None:
    for text in ('executor = "dask"', 'scheduler = "tcp://head:8786"'):
        (tmp_path / "iosig.toml").write_text(f"[engine]\n{text}\n")
        with pytest.raises(UsageError, match="executor = 'dask' and scheduler need each other"):
            load(None, tmp_path)


def test_inline_executor_runs_in_this_process(tmp_path: Path) -> None:
    with executors.open_engine(Settings(engine=EngineSettings(executor="inline")), tmp_path) as engine:
        assert sorted(done.name for done in results(engine, tmp_path, *"abcde")) == list("abcde")
    assert {(tmp_path / name).read_text() for name in "abcde"} == {str(os.getpid())}


@pytest.mark.extra
def test_documented_environment_gives_the_configuration_of_the_code() -> None:
    pytest.importorskip("distributed", reason="the extra `dask` is not installed")
    page = Path(__file__).resolve().parents[2] / "docs" / "many-machines.md"
    documented = dict(re.findall(r"\b(DASK_[A-Z_]+)=(\S+)", page.read_text(encoding="utf-8")))
    script = "import dask, distributed, json, sys; print(json.dumps({n: dask.config.get(n) for n in sys.argv[1:]}))"
    command = [sys.executable, "-c", script, *dask_workers.CONFIGURATION]
    output = subprocess.run(command, env=os.environ | documented, capture_output=True, text=True, check=True).stdout
    assert json.loads(output) == dask_workers.CONFIGURATION
    assert len(documented) == len(dask_workers.CONFIGURATION)
    for name, value in dask_workers.ENVIRONMENT.items():
        assert f"{name}={value}" in page.read_text(encoding="utf-8")
        assert f"export {name}={value}" in list(dask_workers._export_configuration())


def test_call_checks_once_that_the_worker_sees_the_warehouse(tmp_path: Path) -> None:
    store = Store(tmp_path)
    with dask_workers._origin(store) as unseen:
        store.files.remove(unseen.token)
        with pytest.raises(MachineFault, match=f"does not see {tmp_path}"):
            unseen.call("call", abs, -7)
    with dask_workers._origin(store) as origin:
        assert store.has(origin.token)
        assert not store.exists, "a landing that refuses everything leaves no warehouse"
        assert origin.call("call", abs, -7) == 7
    assert list(store.builds.iterdir()) == []
    assert origin.call("call", abs, -7) == 7


class FakeClient:
    """A Dask client with a given connection status; it answers each submission with the same call."""

    def __init__(self, status: str, call: object = None) -> None:
        self.status, self.call, self.loop = status, call, self

    def add_callback(self, callback: Callable[[], object]) -> None:
        callback()

    def submit(self, *_: object, **__: object) -> object:
        return self.call


def test_lost_scheduler_connection_is_a_machine_fault(tmp_path: Path) -> None:
    origin = dask_workers._Origin(tmp_path, None, "builds/a.workers", "iosig")
    for status in ("connecting", "closing", "closed"):
        with pytest.raises(MachineFault, match="scheduler no longer answers"):
            dask_workers.Workers(FakeClient(status), origin).submit(abs, -7).result(0)  # type: ignore[arg-type]


@pytest.mark.extra
def test_cancelled_call_fails_without_waiting_for_a_result(tmp_path: Path) -> None:
    pytest.importorskip("distributed", reason="the extra `dask` is not installed")

    class CancelledCall:
        def add_done_callback(self, settle: Any) -> None:
            settle(self)

        def cancelled(self) -> bool:
            return True

    origin = dask_workers._Origin(tmp_path, None, "builds/a.workers", "iosig")
    workers = dask_workers.Workers(FakeClient("running", CancelledCall()), origin)  # type: ignore[arg-type]
    assert isinstance(workers.submit(abs, -7).exception(timeout=5), MachineFault)


@pytest.mark.extra
def test_lost_call_fails_if_its_starts_cannot_be_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    distributed = pytest.importorskip("distributed", reason="the extra `dask` is not installed")

    class LostCall:
        def add_done_callback(self, settle: Any) -> None:
            settle(self)

        def cancelled(self) -> bool:
            return False

        def result(self, timeout: float) -> None:
            raise distributed.KilledWorker("call", None, 2)

    def fail(*_: object) -> int:
        raise OSError("the store does not answer")

    origin = dask_workers._Origin(tmp_path, None, "builds/a.workers", "iosig")
    monkeypatch.setattr(dask_workers._Origin, "start_count", fail)
    workers = dask_workers.Workers(FakeClient("running", LostCall()), origin)  # type: ignore[arg-type]
    assert isinstance(workers.submit(abs, -7).exception(timeout=5), OSError)


def test_object_store_root_is_resolved_on_the_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Store(tmp_path / "object store").files
    folder.put("builds/a.workers", b"")
    monkeypatch.setattr(Store, "files", folder)
    roots = []
    for machine in ("flow", "worker"):
        monkeypatch.setenv("IOSIG_CACHE", str(tmp_path / machine))
        roots.append(Store.locate("s3://iosig/of-a-test").root)
    origin = dask_workers._Origin(roots[0], "s3://iosig/of-a-test", "builds/a.workers", dask_workers.program())
    assert origin.call("call", os.path.join, roots[0], "jobs") == str(roots[1] / "jobs")


# ---- with workers


@pytest.mark.slow
def test_lost_item_is_retried_and_item_that_kills_workers_is_named(
    cluster: Dask, settings: Settings, tmp_path: Path
) -> None:
    (tmp_path / "slow.once").touch()
    with executors.open_engine(settings, tmp_path) as engine:
        done = results(engine, tmp_path, "one", "slow", "two")
        assert sorted(one.name for one in _with_a_kill(done, tmp_path / "slow.begun")) == ["one", "slow", "two"]
        found = []
        with pytest.raises(WorkerLost, match="'poison' ended 3 workers"):
            found.extend(one.name for one in results(engine, tmp_path, "poison", "three", "four"))
    assert {(tmp_path / name).is_file() for name in ("three", "four")} == {True}, "the rest is done"


def _with_a_kill(done: Iterator[object], begun: Path) -> Iterator[object]:
    """Kill the worker that executes the slow item once, and continue."""
    for count, one in enumerate(done):
        if not count:
            while not begun.exists():
                time.sleep(0.05)
            os.kill(int(begun.read_text()), signal.SIGKILL)
        yield one


@pytest.mark.long
def test_worker_with_another_program_is_refused(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dask_workers, "program", lambda: "iosig 7")
    with (
        executors.open_engine(settings, tmp_path) as engine,
        pytest.raises(UsageError, match=r"runs other versions. Here: iosig 7; there: iosig 0"),
    ):
        list(results(engine, tmp_path, "one"))


@pytest.mark.long
def test_worker_that_does_not_see_the_warehouse_is_refused(settings: Settings, tmp_path: Path) -> None:
    with executors.open_engine(settings, tmp_path) as engine:
        shutil.rmtree(tmp_path / "builds")
        with pytest.raises(MachineFault, match="does not see"):
            list(results(engine, tmp_path, "one"))


@pytest.mark.long
def test_worker_exceptions_and_warnings_reach_the_client(
    settings: Settings, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with executors.open_engine(settings, tmp_path) as engine:
        with pytest.raises(ValueError, match="no such thing"):
            list(results(engine, tmp_path, "one", "faulty", "two"))
        list(results(engine, tmp_path, "warning"))
        assert engine.submit(items("begun")[0], tmp_path).result().name == "begun"
        time.sleep(1.0)
    assert (tmp_path / "two").is_file(), "the rest is done"
    assert "from afar" in caplog.text


@pytest.mark.long
def test_unreachable_scheduler_or_missing_workers_is_a_machine_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dask_workers, "_PATIENCE_S", 1.0)
    engine = EngineSettings(executor="dask", scheduler=f"tcp://127.0.0.1:{free_port()}")
    with (
        pytest.raises(MachineFault, match="No Dask scheduler answers"),
        executors.open_engine(Settings(engine=engine), tmp_path),
    ):
        pass
    with dask(0) as lonely:
        engine = EngineSettings(executor="dask", scheduler=lonely.address)
        with (
            pytest.raises(MachineFault, match="has no workers"),
            executors.open_engine(Settings(engine=engine), tmp_path),
        ):
            pass


@pytest.mark.long
def test_large_files_landed_by_workers_equal_local_landing(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(iosig.streams.landing, "_LARGE_BYTES", 1)
    write_small_site(tmp_path / "site")
    polls = (tmp_path / "site" / "polls.csv").read_text().splitlines()
    for number in range(6):
        rows = polls[1 + number * 400 : 401 + number * 400]
        (tmp_path / "site" / f"polls-{number}.csv").write_text("\n".join([polls[0], *rows]) + "\n")
    (tmp_path / "site" / "polls-again.csv").write_text((tmp_path / "site" / "polls-0.csv").read_text())
    monkeypatch.chdir(tmp_path)
    found = {}
    for name, given in (("here", Settings()), ("afar", settings)):
        store = Store(Path(name))
        with executors.remote_executor(given, store.root) as executor:
            arrivals = list(land_paths(store, given, ["site"], ReadOptions(), executor=executor))
        found[name] = [
            (arrival.line(), arrival.landed and (arrival.landed.landing.sequence, arrival.landed.landing.parts))
            for arrival in arrivals
        ]
    assert found["afar"] == found["here"]
    assert len(found["here"]) == 9


class _Killed(BaseException):
    """An exception that no step may catch."""


@pytest.mark.long
@pytest.mark.parametrize("whom", ["worker", "scheduler", "flow"])
@pytest.mark.parametrize("moment", range(1, 24, 3))
def test_run_killed_at_any_moment_publishes_the_same_release(
    whom: str, moment: int, site: Store, checked_night: Night, tmp_path: Path
) -> None:
    left, store = moment, site

    def at_the_moment(*_: object) -> None:
        nonlocal left
        left -= 1
        if left:
            return
        if whom == "worker":
            killed.workers[0].send_signal(signal.SIGTERM)
            os.killpg(killed.workers[0].pid, signal.SIGKILL)
        elif whom == "scheduler":
            os.killpg(killed.scheduler.pid, signal.SIGKILL)
        else:
            raise _Killed

    with dask(2) as killed:
        settings = Settings(engine=EngineSettings(executor="dask", scheduler=killed.address))
        try:
            with executors.open_engine(settings, store.root) as engine:
                nightly.run_inline(store, settings, at_the_moment, engine=engine)
        except (_Killed, MachineFault):
            assert whom != "worker"
    assert left <= 0
    if not releases.history(store):
        with executors.open_engine(Settings(), store.root) as engine:
            run_night(store, engine=engine)
    (release,) = releases.history(store)
    assert hash_files(store, release) == hash_files(checked_night.store, checked_night.release)


# ---- Slurm


_SBATCH = """\
#!/bin/sh
# what Slurm does with a job script, on this machine alone
for script; do :; done
cp "$script" "{folder}/script"
SLURM_JOB_ID=7 setsid sh "{folder}/script" >"{folder}/out" 2>&1 &
echo $! >>"{folder}/pids"
echo 7
"""


@pytest.mark.long
def test_slurm_job_is_submitted_with_the_configured_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("dask_jobqueue", reason="the extra `dask` is not installed")
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, text in (("sbatch", _SBATCH.format(folder=tmp_path)), ("scancel", "#!/bin/sh\n")):
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).resolve().parents[2]))
    slurm = SlurmSettings(
        partition="io", account="ops", walltime="00:07:00", interface="lo", directives=["--qos=low"], prologue=["true"]
    )
    given = Settings(engine=EngineSettings(executor="slurm"), slurm=slurm)
    with executors.open_engine(given, tmp_path / "warehouse") as engine:
        assert sorted(done.name for done in results(engine, tmp_path, "one", "two")) == ["one", "two"]
    script = (tmp_path / "script").read_text()
    for line in ("-p io", "-A ops", "-t 00:07:00", "--qos=low"):
        assert f"#SBATCH {line}\n" in script
    assert "tls://" in script
    for pid in map(int, (tmp_path / "pids").read_text().split()):
        _ended(pid)
    left = [path for path in (tmp_path / "warehouse").rglob("*") if not path.is_dir() or path.name.startswith(".")]
    assert left == [], "keys and logs are gone"


def _ended(pid: int) -> None:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.1)
    os.killpg(pid, signal.SIGKILL)
    raise AssertionError("a worker outlived its run")
