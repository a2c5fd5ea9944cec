"""Test the store: writes are atomic."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import polars as pl
import pyarrow.parquet as pq
import pytest

from iosig.warehouse.contracts import frames
from iosig.warehouse.contracts.polls import TICKS
from iosig.warehouse.contracts.samples import SAMPLES
from iosig.warehouse.contracts.signatures import SIGNATURE_BURSTS
from iosig.warehouse.errors import ContractError, UsageError
from iosig.warehouse.store import objects, store as store_module
from iosig.warehouse.store.store import Store, join_parquet, lock_warehouse, write_json, write_parquet
from tests.warehouse.test_placing import lying_in

ROWS = pl.DataFrame(
    {
        "polled_on": [None],
        "filesystem": ["lake"],
        "polled_at": [None],
        "interval_s": [2.0],
        "controller_count": [1],
        "expected_controller_count": [1],
        "read_bytes": [1 << 53],
        "written_bytes": [None],
        "read_count": None,
        "write_count": None,
    },
    schema=frames.schema(TICKS),
).with_columns(
    polled_on=pl.lit("2018-02-09").str.to_date(),
    polled_at=pl.lit("2018-02-09T12:00:00Z").str.to_datetime(time_unit="us", time_zone="UTC"),
)


# ---- Parquet and JSON


def test_parquet_has_units_and_docs(tmp_path: Path) -> None:
    path = write_parquet(ROWS, TICKS, tmp_path / "ticks.parquet")
    written = pq.read_schema(path)
    assert written.metadata[b"grain"].decode() == TICKS.grain
    assert written.names == list(TICKS.column_names)
    for column in TICKS.columns:
        field = written.field(column.name)
        assert field.metadata[b"doc"].decode() == column.doc
        assert field.metadata.get(b"unit", b"").decode() == (column.unit or "")
        assert field.nullable == column.nullable
    assert pl.read_parquet(path).equals(ROWS)


@pytest.mark.parametrize(
    "wrong",
    [
        ROWS.drop("interval_s"),
        ROWS.with_columns(extra=1),
        ROWS.with_columns(pl.col("controller_count").cast(pl.Int32)),
        ROWS.with_columns(interval_s=pl.lit(float("nan"))),
        ROWS.with_columns(read_bytes=pl.lit(-1, pl.Int64)),
        ROWS.with_columns(filesystem=pl.lit(None, pl.String)),
    ],
    ids=["lacks", "more", "narrow", "nan", "negative", "null"],
)
def test_frame_that_violates_contract_is_not_written(tmp_path: Path, wrong: pl.DataFrame) -> None:
    path = tmp_path / "ticks.parquet"
    with pytest.raises(ContractError, match="filesystem_rates"):
        write_parquet(wrong, TICKS, path)
    assert lying_in(tmp_path) == []
    write_parquet(ROWS, TICKS, path)
    with pytest.raises(ContractError, match="filesystem_rates"):
        write_parquet(wrong, TICKS, path)
    assert pl.read_parquet(path).equals(ROWS)


def test_empty_table_is_written_with_its_schema(tmp_path: Path) -> None:
    path = write_parquet(frames.empty(SAMPLES), SAMPLES, tmp_path / "samples.parquet")
    assert pl.read_parquet(path).schema == frames.schema(SAMPLES)


def test_json_does_not_depend_on_order_of_keys(tmp_path: Path) -> None:
    first = write_json({"b": 1, "a": [2]}, tmp_path / "1").read_bytes()
    second = write_json({"a": [2], "b": 1}, tmp_path / "2").read_bytes()
    assert first == second
    assert json.loads(first) == {"a": [2], "b": 1}
    with pytest.raises(TypeError):
        write_json({"a": object()}, tmp_path / "3")
    assert lying_in(tmp_path) == ["1", "2"]


# ---- lock and folder


def test_second_writer_fails_at_once_and_lock_is_released(tmp_path: Path) -> None:
    store = Store(tmp_path / "warehouse")
    with lock_warehouse(store), pytest.raises(UsageError, match="Another run is writing"), lock_warehouse(store):
        pytest.fail("two held the lock")
    with lock_warehouse(store):
        pass


def test_lock_holder_is_reported_and_waiting_writer_gets_the_lock(tmp_path: Path) -> None:
    store = Store(tmp_path / "warehouse")
    with (
        lock_warehouse(store),
        pytest.raises(UsageError, match=rf"process {os.getpid()} on .+, since 20"),
        lock_warehouse(store),
    ):
        pytest.fail("two held the lock")
    assert not (store.root / "lock.json").exists()
    (store.root / "lock.json").write_text("{torn")
    with store.files.lock("lock"), pytest.raises(UsageError, match=r"warehouse\. Wait for it"), lock_warehouse(store):
        pytest.fail("two held the lock")
    is_free, order = threading.Event(), []

    def hold() -> None:
        with lock_warehouse(store):
            is_free.set()
            time.sleep(0.2)
            order.append("held")

    holder = threading.Thread(target=hold)
    holder.start()
    is_free.wait(10)
    with lock_warehouse(store, wait_s=30):
        order.append("waited")
    holder.join()
    assert order == ["held", "waited"]


def test_lock_excludes_other_processes_and_ends_with_its_process(tmp_path: Path) -> None:
    code = (
        "import sys, time; from pathlib import Path; from iosig.warehouse.store.store import Store, lock_warehouse\n"
        "with lock_warehouse(Store(Path(sys.argv[1]))): print('held', flush=True); time.sleep(60)"
    )
    store = Store(tmp_path)
    holder = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(UsageError), lock_warehouse(store):
            pytest.fail("two held the lock")
    finally:
        holder.kill()
        holder.wait()
    with lock_warehouse(store):
        pass


def test_warehouse_exists_after_first_landing_or_release(tmp_path: Path) -> None:
    store = Store(tmp_path / "warehouse")
    assert not store.exists
    store.root.mkdir()
    assert not store.exists
    store.landed.mkdir()
    assert store.exists
    store.landed.rmdir()
    store.catalogue.touch()
    assert store.exists


def test_parts_are_joined_in_order_with_metadata(tmp_path: Path) -> None:
    schema = frames.schema(SIGNATURE_BURSTS)
    key = {"application_id": "a", "filesystem": "f", "direction": "read", "metric": "bytes", "method": "iosi"}
    numbers = {
        "start_s": 1.0,
        "peak_s": 2.0,
        "end_s": 3.0,
        "volume_bytes": 4.0,
        "support_ratio": None,
        "volume_operations": None,
    }
    parts = []
    for part in range(3):
        rows = pl.DataFrame([key | numbers | {"burst": 2 * part + k} for k in range(2)], schema=schema)
        parts.append(write_parquet(rows, SIGNATURE_BURSTS, tmp_path / f"{part}.parquet"))
    joined = join_parquet(parts, SIGNATURE_BURSTS, tmp_path / "all.parquet")
    assert pl.read_parquet(joined)["burst"].to_list() == [0, 1, 2, 3, 4, 5]
    assert pq.read_schema(joined).equals(pq.read_schema(parts[0]), check_metadata=True), "units and docs too"
    odd = join_parquet(
        parts, SIGNATURE_BURSTS, tmp_path / "odd.parquet", lambda rows: rows.filter(pl.col("burst") % 2 == 1)
    )
    assert pl.read_parquet(odd)["burst"].to_list() == [1, 3, 5]
    older = replace(SIGNATURE_BURSTS, columns=tuple(c for c in SIGNATURE_BURSTS.columns if c.name != "support_ratio"))
    old = write_parquet(pl.read_parquet(joined).drop("support_ratio"), older, tmp_path / "old.parquet")
    carried = join_parquet([old], SIGNATURE_BURSTS, tmp_path / "carried.parquet", lambda rows: rows)
    assert pl.read_parquet(carried).equals(pl.read_parquet(joined)), "a column that is younger is NULL"
    with pytest.raises(ContractError, match="burst_at_least_0 in 6 rows"):
        join_parquet([old], SIGNATURE_BURSTS, carried, lambda rows: rows.with_columns(burst=-1 - pl.col("burst")))
    nothing = join_parquet([], SIGNATURE_BURSTS, tmp_path / "none.parquet")
    assert pl.read_parquet(nothing).schema == schema


def test_url_is_mapped_to_a_private_cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IOSIG_CACHE", str(tmp_path))
    store = Store.locate("s3://bucket/site/")
    assert store == Store.locate("s3://bucket/site") != Store.locate("s3://bucket/other")
    assert (store.url, store.name) == ("s3://bucket/site", "s3://bucket/site")
    assert Store(store.root).url == store.url, "wherever its root is handed on"
    assert store.root.stat().st_mode & 0o077 == 0
    folder = Store.locate(str(tmp_path / "folder"))
    assert (folder.url, folder.name) == (None, str(tmp_path / "folder"))


def test_missing_object_store_library_is_reported_with_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IOSIG_CACHE", str(tmp_path))
    monkeypatch.setattr(objects, "find_spec", lambda name: None)
    objects.require_installed.cache_clear()
    with pytest.raises(UsageError, match="uv sync --extra s3"):
        Store.locate("s3://bucket/without-a-library").files.put("a", b"")


def test_default_warehouse_is_never_within_installed_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkout = Path(__file__).resolve().parents[3]
    assert store_module.default_root() == checkout / "warehouse" / "data"
    monkeypatch.setattr(store_module, "_CHECKOUT", tmp_path / "site-packages")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    found = store_module.default_root()
    assert not found.is_relative_to(tmp_path / "site-packages")
    if sys.platform == "linux":
        assert found == tmp_path / "share" / "iosig" / "warehouse"


def test_path_may_contain_a_scheme_separator() -> None:
    assert Store.locate("sites/a://b").root == Path("sites/a://b")


@pytest.mark.parametrize("name", ["s3://bucket/a[1]", "s3://bucket/a?b", "s3://bucket/a#b", "s3://bucket/a%20b"])
def test_url_with_reserved_character_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="has a special meaning in a URL"):
        Store.locate(name)


def test_path_that_is_not_utf8_is_refused() -> None:
    with pytest.raises(UsageError, match="must be UTF-8"):
        Store.locate("/warehouse/\udcff")
