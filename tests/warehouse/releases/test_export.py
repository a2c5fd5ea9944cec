"""Test the export of self-describing files."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from iosig.warehouse.contracts import frames, table
from iosig.warehouse.contracts.quality import REJECTS
from iosig.warehouse.contracts.samples import SAMPLES
from iosig.warehouse.errors import UsageError
from iosig.warehouse.releases import releases
from iosig.warehouse.releases.export import export_table, json_text, write_csv
from iosig.warehouse.releases.releases import list_published_tables
from iosig.warehouse.store.store import Store
from tests.warehouse.releasing import publish, publish_older_jobs, read

CONTENT: dict[str, Any] = {
    "jobs": {
        9: """
        job_id  user   account    started_at      ended_at
        1       ann    a,"b"'c    10:00:00        11:00:00.5
        2       .      .          10:00:00        11:00:00
        """,
        None: "job_id ended_at \n run .",
    },
    "samples": {9: "job_id sample_bytes_per_s reported_ratios \n 1 0,.,2.5 . \n 2 1e12 0.5"},
}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    store = Store(tmp_path_factory.mktemp("export") / "warehouse")
    publish(store, "first", CONTENT)
    return store


@pytest.mark.parametrize("name", ["jobs", "samples", "classes"])
def test_parquet_export_has_units_and_docs(store: Store, tmp_path: Path, name: str) -> None:
    release, made = releases.find(store, None), table(name)
    path = tmp_path / "new" / f"{name}.parquet"
    count = export_table(store, release, name, path)
    found = pl.read_parquet(path)
    assert found.height == count
    assert found.schema == frames.schema(made)
    assert found.is_empty() or found.sort(made.key).equals(read(store, release, name))
    schema = pq.read_schema(path)
    assert all(field.nullable for field in schema)
    assert schema.metadata[b"grain"].decode() == made.grain
    for column in made.columns:
        field = schema.field(column.name)
        assert field.metadata[b"doc"].decode() == column.doc
        assert field.metadata.get(b"unit", b"").decode() == (column.unit or "")
    assert [path.name for path in path.parent.iterdir()] == [path.name]


def test_csv_export_has_header_empty_nulls_and_json_lists(store: Store, tmp_path: Path) -> None:
    release = releases.find(store, None)
    path = tmp_path / "samples.CSV"
    assert export_table(store, release, "samples", path) == 2
    found = pl.read_csv(path, infer_schema=False).sort("job_id")
    assert found.columns == list(SAMPLES.column_names)
    assert [json.loads(text) for text in found["sample_bytes_per_s"]] == [[0.0, None, 2.5], [1e12]]
    assert found["reported_ratios"].to_list() == [None, "[0.5]"]
    assert found["started_at"][0].startswith("2018-02-09 12:00:00")


def test_csv_export_quotes_special_characters(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    assert export_table(store, releases.find(store, None), "jobs", path) == 3
    found = pl.read_csv(path, infer_schema=False).sort("job_id")
    assert found["account"].to_list() == ['a,"b"\'c', None, None]
    assert found["ended_on"].to_list() == ["2018-02-09", "2018-02-09", None]


def test_csv_export_of_empty_table_is_a_header(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "rejects.csv"
    assert export_table(store, releases.find(store, None), "rejects", path) == 0
    header = path.read_text().strip().replace('"', "")
    assert header == ",".join(REJECTS.column_names)


@pytest.mark.parametrize("name", ["nothing", "job_records", "releases", "jobs; drop", ""])
def test_unpublished_table_is_refused_with_list_of_published_tables(store: Store, tmp_path: Path, name: str) -> None:
    with pytest.raises(
        UsageError,
        match="A release has the tables applications, attributed_io, attribution_daily, class_reviews, classes",
    ) as refusal:
        export_table(store, releases.find(store, None), name, tmp_path / "file.parquet")
    assert all(made.name in str(refusal.value) for made in list_published_tables())
    assert list(tmp_path.iterdir()) == []


def test_failed_export_keeps_old_file(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "samples.csv"
    path.write_text("old")

    def break_off(*_: object, **__: object) -> str:
        raise ZeroDivisionError

    release = releases.find(store, None)
    with monkeypatch.context() as patch:
        patch.setattr(json, "dumps", break_off)
        with pytest.raises(ZeroDivisionError):
            export_table(store, release, "samples", path)
    assert path.read_text() == "old"
    assert [found.name for found in tmp_path.iterdir()] == ["samples.csv"]


def test_release_older_than_a_column_can_be_exported(tmp_path: Path) -> None:
    store = Store(tmp_path / "warehouse")
    release = publish_older_jobs(store, ["line"], {9: "job_id \n 1"})
    target = tmp_path / "jobs.parquet"
    assert export_table(store, release, "jobs", target) == 1
    assert pl.read_parquet(target).select("job_id", "line").rows() == [("1", None)]


def test_batches_of_nested_types_are_written_to_csv() -> None:
    schema = pa.schema({"n": pa.int64(), "l": pa.list_(pa.float64()), "s": pa.struct({"a": pa.int64()})})
    batches = [
        pa.record_batch([[1], [[0.5, None]], [{"a": 1}]], schema=schema),
        pa.record_batch([[None, 3], [[], None], [None, {"a": None}]], schema=schema),
    ]
    target = io.BytesIO()
    assert write_csv(pa.RecordBatchReader.from_batches(schema, batches), target) == 3
    assert pl.read_csv(target.getvalue()).rows() == [
        (1, "[0.5, null]", '{"a": 1}'),
        (None, "[]", None),
        (3, None, '{"a": null}'),
    ]


@pytest.mark.parametrize("name", ["x.json", "x.duckdb", "x", "x.parquet.gz", ".csv"])
def test_unknown_suffix_is_refused_with_known_suffixes(store: Store, tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match=r"\.parquet or \.csv.*--all.*\.duckdb.*--feed.*\.json"):
        export_table(store, releases.find(store, None), "jobs", tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_csv_export_escapes_formulas_unless_raw() -> None:
    texts = ["=1", "+1", "-1", "@1", "\t1", "\r1", "1=", "", None]
    batch = pa.record_batch({"=n": [-1] * len(texts), "text": texts})
    for is_raw in (False, True):
        target = io.BytesIO()
        write_csv(pa.RecordBatchReader.from_batches(batch.schema, [batch]), target, is_raw=is_raw)
        found = pl.read_csv(target.getvalue())
        mark = "" if is_raw else "'"
        assert found.columns == [f"{mark}=n", "text"]
        assert found["text"].to_list()[:7] == [*(mark + str(text) for text in texts[:6]), "1="]
        assert found[f"{mark}=n"].to_list() == [-1] * len(texts)


def test_non_finite_numbers_are_null_in_json() -> None:
    value = {"a": [1.5, float("nan"), {"b": float("-inf")}], "at": datetime(2018, 2, 9, tzinfo=UTC), "c": (None, True)}
    assert json_text(value) == '{"a": [1.5, null, {"b": null}], "at": "2018-02-09T00:00:00+00:00", "c": [null, true]}'
