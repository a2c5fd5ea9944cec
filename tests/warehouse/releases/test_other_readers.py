"""Test other readers in environments without iosig: the current release, a tag, and a relocated warehouse."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from iosig.warehouse.releases.relocating import relocate
from iosig.warehouse.store.store import Store
from tests.warehouse.releasing import FIRST, SECOND, publish

pytestmark = pytest.mark.long

NOW, TAGGED = ["100", "80", "81", "91", "run"], ["80", "81", "90", "run"]
ICEBERG = ["pyiceberg[sql-sqlite,pyarrow]==0.12.*", "polars>=2"]
#: packages of each reader, and its code to read the jobs: {at} is the warehouse, `tag` a release id or None
READERS = {
    "pyiceberg, SQL catalogue": (
        ICEBERG,
        """
from pyiceberg.catalog.sql import SqlCatalog
catalogue = SqlCatalog("iosig", uri=f"sqlite:///{at}/catalogue.sqlite", warehouse=f"file://{at}")
scan = catalogue.load_table("published.jobs").scan()
rows = (scan.use_ref(tag) if tag else scan).to_arrow()["job_id"].to_pylist()
empty = catalogue.load_table("published.classes").scan().to_arrow().num_rows
""",
    ),
    "pyiceberg, StaticTable": (
        ICEBERG,
        """
from pyiceberg.table import StaticTable
scan = StaticTable.from_metadata(f"{at}/tables/jobs").scan()
rows = (scan.use_ref(tag) if tag else scan).to_arrow()["job_id"].to_pylist()
empty = StaticTable.from_metadata(f"{at}/tables/classes").scan().to_arrow().num_rows
""",
    ),
    "polars, its own reader": (
        ICEBERG,
        """
import polars as pl
from pyiceberg.table import StaticTable
table = StaticTable.from_metadata(f"{at}/tables/jobs")
snapshot = table.metadata.refs[tag].snapshot_id if tag else None
rows = pl.scan_iceberg(table, snapshot_id=snapshot, reader_override="native").collect()["job_id"].to_list()
classes = StaticTable.from_metadata(f"{at}/tables/classes")
empty = pl.scan_iceberg(classes, reader_override="native").collect().height
""",
    ),
    "DuckDB's iceberg extension": (
        [
            "duckdb==1.5.5",
            "duckdb-extensions",
            "duckdb-extension-iceberg==1.5.5",
            "duckdb-extension-avro==1.5.5",
            "pytz",
        ],
        """
import duckdb
from duckdb_extensions import import_extension
for name in ("avro", "iceberg"):
    import_extension(name)
with duckdb.connect() as connection:
    connection.execute("load avro; load iceberg")
    scan = f"iceberg_scan('{at}/tables/jobs')"
    if tag:
        hint = open(f"{at}/tables/jobs/metadata/version-hint.text").read()
        metadata = json.load(open(f"{at}/tables/jobs/metadata/{hint}.metadata.json"))
        scan = f"iceberg_scan('{at}/tables/jobs', snapshot_from_id => {metadata['refs'][tag]['snapshot-id']}::ubigint)"
    rows = [row[0] for row in connection.sql(f"select job_id from {scan}").fetchall()]
    empty = connection.sql(f"select count(*) from iceberg_scan('{at}/tables/classes')").fetchone()[0]
""",
    ),
}
HEAD = "import json, sys\nat, tag = sys.argv[1], json.loads(sys.argv[2])\n"
TAIL = """
ours = sorted(name for name in sys.modules if name.startswith("iosig"))
print(json.dumps([sorted(rows), empty, ours]))
"""


@pytest.fixture(scope="module")
def environments(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, ...], Path]:
    """Create a clean environment for each set of packages and return its Python; skip where that fails."""
    if shutil.which("uv") is None:
        pytest.skip("uv, which makes the environments, is not on this machine")
    made = {}
    for packages in {tuple(packages) for packages, _ in READERS.values()}:
        folder = tmp_path_factory.mktemp("environment") / "venv"
        python = folder / "bin" / "python"
        commands = (["uv", "venv", folder], ["uv", "pip", "install", "--python", python, *packages])
        for command in commands:
            done = subprocess.run([*map(str, command), "--quiet"], capture_output=True, text=True, check=False)
            if done.returncode:
                pytest.skip(f"the packages cannot be had here: {done.stderr.strip()[-200:]}")
        made[packages] = python
    return made


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Create a warehouse with two releases and a relocated copy."""
    here, moved = (tmp_path_factory.mktemp("readers") / name for name in ("here", "moved ü"))
    publish(Store(here), "first", FIRST, inputs=("l1", "l2"))
    publish(Store(here), "second", SECOND, inputs=("l3",))
    shutil.copytree(here, moved, symlinks=True)
    relocate(Store(moved))
    return {"here": here, "moved": moved}


@pytest.mark.parametrize("tag", [None, "2018-02-09-first"], ids=["now", "by-tag"])
@pytest.mark.parametrize("place", ["here", "moved"])
@pytest.mark.parametrize("name", READERS)
def test_other_reader_reads_rows_of_release(
    name: str,
    place: str,
    tag: str | None,
    environments: dict[tuple[str, ...], Path],
    places: dict[str, Path],
    tmp_path: Path,
) -> None:
    packages, code = READERS[name]
    python = environments[tuple(packages)]
    command = [str(python), "-c", HEAD + code + TAIL, str(places[place]), json.dumps(tag)]
    # files that an earlier run left in the user's home must have no effect
    home = os.environ | {"HOME": str(tmp_path)}
    done = subprocess.run(command, cwd=tmp_path, env=home, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == [TAGGED if tag else NOW, 0, []]
