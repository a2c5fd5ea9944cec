"""Commands of docs/many-machines.md work as documented, with the addresses, secrets and machine sizes of the test."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import pytest

from tests.nights import write_small_site
from tests.servers import PASSWORD, free_port, postgresql, seaweedfs, slurm

pytestmark = pytest.mark.long

_PAGE = (Path(__file__).resolve().parents[2] / "docs" / "many-machines.md").read_text(encoding="utf-8")
_IOSIG = "import sys; from iosig.cli import main; sys.argv[0] = 'iosig'; main()"
#: programs that the page calls: `uv run` uses the installed environment without changing it
_PROGRAMS = {
    "uv": '[ $1 = run ] && shift && exec "$@"\n[ $1 = sync ]',
    "dask": f'exec {sys.executable} -m dask "$@"',
    "iosig": f'exec {sys.executable} -c "{_IOSIG}" "$@"',
}


def blocks(heading: str, kind: str) -> list[str]:
    """Return the code blocks of a kind in a section of the page."""
    section = _PAGE.split(f"# {heading}\n", 1)[1].split("\n#", 1)[0]
    return re.findall(rf"```{kind}\n(.*?)```", section, re.DOTALL)


def with_own(text: str, own: Mapping[str, str]) -> str:
    """Return a text with the test's addresses in place of the page's; each of these must occur."""
    for theirs, ours in own.items():
        assert theirs in text, theirs
        text = text.replace(theirs, ours)
    return text


def typed(lines: str, folder: Path, **environment: str) -> str:
    """Run lines in a shell with a minimal environment; return its output."""
    programs = folder / "bin"
    programs.mkdir()
    for name, body in _PROGRAMS.items():
        (programs / name).write_text(f"#!/bin/sh\n{body}\n")
        (programs / name).chmod(0o755)
    told = {"PATH": f"{programs}:{os.environ['PATH']}", "HOME": str(folder), "IOSIG_CACHE": str(folder / "cache")}
    told |= {"PYTHONPATH": str(Path(__file__).resolve().parents[2])} | environment
    out, err = folder / "out", folder / "err"
    with out.open("w") as stdout, err.open("w") as stderr:
        shell = subprocess.Popen(
            ["bash", "-eu", "-c", lines], env=told, cwd=folder, stdout=stdout, stderr=stderr, start_new_session=True
        )
        try:
            code = shell.wait()
        finally:
            # background processes of the shell belong to its session
            with suppress(ProcessLookupError):
                os.killpg(shell.pid, signal.SIGKILL)
    assert code == 0, err.read_text()
    assert PASSWORD not in out.read_text() + err.read_text()
    return out.read_text()


@pytest.fixture
def landed(tmp_path: Path) -> str:
    """Commands that land a small site, publish a release and show some of it."""
    write_small_site(tmp_path / "site")
    return f'iosig land {tmp_path / "site"}\niosig run\niosig sql "from jobs" --format csv\n'


def test_documented_postgresql_catalogue_works(landed: str, tmp_path: Path) -> None:
    if shutil.which("createdb") is None:
        pytest.skip("createdb is not on this machine (Debian: postgresql-client)")
    (lines,) = blocks("The catalogue on a PostgreSQL server", "sh")
    (tmp_path / "data").mkdir()
    with postgresql() as server:
        own = {
            "--host db.example.org": f"--host 127.0.0.1 --port {server.port} --username iosig",
            "iosig@db.example.org": f"iosig@127.0.0.1:{server.port}",
            "/data/iosig": str(tmp_path / "data"),
        }
        begun = f"export IOSIG_WAREHOUSE={tmp_path / 'data'}\n{landed}"
        again = 'iosig sql "from jobs limit 1" --format csv\n'
        done = typed(f"{begun}{with_own(lines, own)}{again}", tmp_path, PGPASSWORD=PASSWORD)
    assert len(done.split('"job_id"')) == 3, "the jobs are shown before it and after it"
    assert '"kind": "postgresql"' in (tmp_path / "data" / "catalogue.json").read_text(), "it is on the server"


def test_documented_object_store_with_rest_catalogue_works(tmp_path: Path) -> None:
    (store,) = blocks("A warehouse in an object store", "sh")
    (secret,) = blocks("Its catalogue on an Iceberg REST server", "sh")
    (settings,) = blocks("Its catalogue on an Iceberg REST server", "toml")
    write_small_site(tmp_path / "site")
    with seaweedfs("page-tables") as weed:
        of_settings = {
            "https://catalogue.example.org:8181": weed.rest_uri,
            'warehouse = "iosig"': 'warehouse = "page-tables"',
            "s3://iosig-tables": "s3://page-tables",
        }
        (tmp_path / "iosig.toml").write_text(with_own(settings, of_settings))
        own = {
            "https://s3.example.org": weed.environment["AWS_ENDPOINT_URL"],
            "s3://bucket/iosig": "s3://iosig/page",
            "/etc/iosig.toml": str(tmp_path / "iosig.toml"),
            "/var/spool/iosig": str(tmp_path / "site"),
            "CREDENTIAL=…": 'CREDENTIAL="tester:$SECRET"',
            "KEY_ID=…": "KEY_ID=tester",
            "ACCESS_KEY=…": 'ACCESS_KEY="$SECRET"',
        }
        done = typed(with_own(secret + store, own), tmp_path, SECRET=PASSWORD)
    assert "s3d" in done, "the jobs are shown"


def test_documented_dask_cluster_works(landed: str, tmp_path: Path) -> None:
    pytest.importorskip("distributed", reason="the extra `dask` is not installed")
    (lines,) = blocks("Work on many machines: Dask", "sh")
    (settings,) = blocks("Work on many machines: Dask", "toml")
    port = str(free_port())
    lines = with_own(lines, {"10.0.0.1": "127.0.0.1", "8786": port, "--nworkers 8": "--nworkers 2 --host 127.0.0.1"})
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "iosig.toml").write_text(with_own(settings, {"10.0.0.1": "127.0.0.1", "8786": port}))
    done = typed(f"{lines}export IOSIG_WAREHOUSE={tmp_path / 'data'}\n{landed}", tmp_path)
    assert "s3d" in done, "the jobs are shown"


def test_documented_slurm_jobs_work(landed: str, tmp_path: Path) -> None:
    pytest.importorskip("dask_jobqueue", reason="the extra `dask` is not installed")
    (settings,) = blocks("Work on many machines: Slurm", "toml")
    own = {"job_count = 4": "job_count = 1", "worker_count = 8": "worker_count = 2", '"32GB"': '"3GB"'}
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "iosig.toml").write_text(with_own(settings, own))
    with slurm() as configuration:
        lines = f"export IOSIG_WAREHOUSE={tmp_path / 'data'}\n{landed}"
        done = typed(lines, tmp_path, SLURM_CONF=str(configuration))
    assert "s3d" in done, "the jobs are shown"
