"""Machine faults end in one sentence with exit code 6, and bugs are not disguised as faults."""

from __future__ import annotations

import errno
import re
import sqlite3
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from iosig.flows.faults import machine_fault
from iosig.warehouse.errors import MachineFault
from iosig.warehouse.store.store import Store
from tests.nights import Cli

ROOT = Path("/data/iosig")


class _ConnectError(Exception):
    """A look-alike of the exception of Prefect's HTTP client."""

    __module__ = "httpx"


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (OSError(errno.ENOSPC, "No space left on device", "/data/iosig/x"), "/data/iosig/x: no space left"),
        (OSError(errno.EDQUOT, "Disk quota exceeded"), "/data/iosig: the owner's quota"),
        (PermissionError(errno.EACCES, "Permission denied", b"/data/iosig/y"), "/data/iosig/y: permission denied"),
        (OSError(errno.EROFS, "Read-only file system", "/data/iosig/z"), "is read-only"),
        (OSError(errno.EMFILE, "Too many open files"), "ulimit"),
        (OSError(errno.EIO, "Input/output error", "/data/iosig/z"), "an I/O error"),
        (FileNotFoundError(errno.ENOENT, "No such file", "/data/iosig/tables/a.parquet"), "a.parquet does not exist"),
        (FileNotFoundError(errno.ENOENT, "No usable temporary directory found in ['/tmp']"), "TMPDIR"),
        (MemoryError(), "Out of memory"),
        (duckdb.OutOfMemoryException("could not allocate block"), "memory_limit"),
        (duckdb.IOException('Could not write file "/data/iosig/b.tmp": No space left on device'), "no space left"),
        (
            duckdb.InvalidInputException("No magic bytes in '/data/iosig/tables/b.parquet'"),
            "b.parquet cannot be read (No magic bytes",
        ),
        (pa.ArrowInvalid("Could not open Parquet input source '/data/iosig/c.parquet': torn"), "c.parquet cannot be"),
        (OSError(errno.EFBIG, "File too large", "/data/iosig/x"), "/data/iosig/x: it exceeds the maximum file size"),
        (OSError(errno.ENOSPC, "[Errno 28] Failed to write '/mnt/a b.csv'"), "/mnt/a b.csv: no space left"),
        (OSError("could not open '/data/iosig/tables/c.parquet' (os error 13)"), "c.parquet: permission denied"),
        (
            FileNotFoundError(errno.ENOENT, "Failed to open '/data/iosig/tables/d.avro'. Detail"),
            "d.avro does not exist",
        ),
        (BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable"), "ulimit -u"),
        (RuntimeError("can't start new thread"), "ulimit -u"),
        (ImportError("libarrow.so: failed to map segment from shared object"), "Out of memory"),
        (
            BrokenProcessPool("A process in the process pool was terminated abruptly"),
            "A worker process ended unexpectedly",
        ),
        (_ConnectError("All connection attempts failed"), "The Prefect server does not answer"),
        (sqlite3.OperationalError("unable to open database file"), "permission denied"),
        (sqlite3.OperationalError("attempt to write a readonly database"), "permission denied"),
        (sqlite3.OperationalError("database or disk is full"), "no space left"),
        (sqlite3.DatabaseError("database disk image is malformed"), "contains a damaged database"),
    ],
)
def test_machine_faults_are_reported_in_one_sentence(
    error: BaseException, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    fault = machine_fault(error, ROOT)
    assert isinstance(fault, MachineFault)
    assert told in str(fault)
    assert str(fault).endswith(".")
    assert fault.exit_code == 6


@pytest.mark.parametrize(
    "error",
    [
        KeyError("x"),
        ValueError("no space left"),
        FileNotFoundError(errno.ENOENT, "No such file", "elsewhere/x"),
        duckdb.BinderException("Referenced column not found"),
    ],
)
def test_bugs_are_not_machine_faults(error: Exception) -> None:
    assert machine_fault(error, ROOT) is None


def test_cause_of_an_exception_is_considered() -> None:
    error = KeyError("x")
    error.__cause__ = OSError(errno.ENOSPC, "No space left on device", "/data/iosig/x")
    assert "no space left" in str(machine_fault(error, ROOT))


# ---- through the command


@pytest.mark.slow
def test_damaged_landing_manifest_is_named(cli: Cli, site: Store) -> None:
    manifest = next(site.landed.glob("*/landing.json"))
    manifest.write_text('{"torn')
    code, _, err = cli("--warehouse", site.root, "run", "--inline")
    assert code == 6
    assert str(manifest) in err
    assert f"iosig --warehouse {site.root} repair" in err


@pytest.mark.parametrize("content", [None, b"{torn", b"{}", b"[]"])
def test_repair_recreates_a_missing_or_damaged_format_file(content: bytes | None, cli: Cli, site: Store) -> None:
    path = site.root / "form.json"
    known = path.read_bytes()
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    code, _, err = cli("--warehouse", site.root, "releases")
    assert code == 6
    assert f"{path} is" in err
    assert f"iosig --warehouse {site.root} repair" in err
    code, out, err = cli("--warehouse", site.root, "repair")
    assert (code, path.read_bytes()) == (0, known), err
    assert "form.json" in out
    assert cli("--warehouse", site.root, "releases")[0] == 0


def test_invalid_memory_limit_is_refused(cli: Cli, site: Store) -> None:
    (site.root / "iosig.toml").write_text('[engine]\nmemory_limit = "plenty"\n')
    code, _, err = cli("--warehouse", site.root, "run", "--inline")
    assert code == 2
    assert "engine.memory_limit" in err


@pytest.mark.parametrize(
    ("kind", "text", "told"),
    [
        (
            type("GenericError", (Exception,), {"__module__": "obstore.exceptions"}),
            "Generic S3 error: Error performing GET http://h/b/x in 109.03ms, after 1 retries, max_retries: 1, "
            "retry_timeout: 180s  - HTTP error: error sending request\n\nDebug source:\nGeneric {",
            r"\(Generic S3 error: Error performing GET http://h/b/x: HTTP error: error sending request\)",
        ),
        (OSError, "When reading x: AWS Error ACCESS_DENIED during HeadObject", "AWS Error ACCESS_DENIED"),
    ],
)
def test_object_store_errors_are_reported_without_debug_output(
    kind: type[Exception], text: str, told: str, tmp_path: Path
) -> None:
    (tmp_path / ".url").write_text("s3://bucket/site")
    fault = machine_fault(kind(text), tmp_path)
    assert isinstance(fault, MachineFault)
    assert re.search(f"^The object store s3://bucket/site failed .*{told}", str(fault)), fault
    assert "Debug" not in str(fault)
