"""Test files of compressed traces: intact or refused, small, and readable by other tools."""

from __future__ import annotations

import os
import random
import re
from pathlib import Path

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from iosig.transforms.traces.frames import from_frame, to_frame
from iosig.warehouse.errors import InputRefused, UsageError
from iosig.warehouse.sources.extrapolations import compressed_traces
from iosig.warehouse.sources.extrapolations.compressed_traces import (
    COLUMNS,
    decode,
    is_compressed_trace,
    read,
    render_page,
    schema,
    structures,
    write,
)
from tests.compressed import file_per_process, table_one

PAGE = Path(__file__).resolve().parents[4] / "docs" / "compressed-traces.md"
FRAME = to_frame(table_one(8))
ABOUT = {"process_count": "8", "program": "ios_strong é"}


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "table-one.parquet"
    write(path, FRAME, ABOUT)
    return path


def refuses(path: Path, words: str) -> None:
    with pytest.raises(InputRefused, match=words):
        read(path)


def rewritten(path: Path, rows: pa.Table, **metadata: str) -> None:
    """Write a table as another tool might, with the trace's metadata except for some keys."""
    own = {"format": compressed_traces.FORMAT, "version": "1", "process_count": "8"} | metadata
    pq.write_table(rows.replace_schema_metadata({f"iosig.{key}": text for key, text in own.items()}), path)


# ---- round trip


def test_trace_round_trips(trace: Path) -> None:
    frame, metadata = read(trace)
    assert frame.equals(FRAME)
    assert frame.schema == FRAME.schema
    assert metadata == ABOUT
    assert from_frame(frame, 8) == table_one(8)


def test_trace_without_calls_round_trips(tmp_path: Path) -> None:
    write(tmp_path / "none", FRAME.clear(), {"process_count": "3"})
    frame, metadata = read(tmp_path / "none")
    assert (frame.height, metadata) == (0, {"process_count": "3"})


def test_existing_file_is_replaced_atomically(trace: Path) -> None:
    write(trace, to_frame(file_per_process(4)), {"process_count": "4"})
    assert read(trace)[1] == {"process_count": "4"}
    with pytest.raises(ValueError, match="columns"):
        write(trace, FRAME.drop("slots"), ABOUT)
    assert read(trace)[1] == {"process_count": "4"}
    assert [path.name for path in trace.parent.iterdir()] == [trace.name]


@pytest.mark.parametrize(
    "metadata", [{}, {"process_count": "0"}, {"process_count": "x"}, {"process_count": "8", "format": "mine"}]
)
def test_invalid_metadata_raises_value_error(tmp_path: Path, metadata: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"metadata|process_count"):
        write(tmp_path / "trace", FRAME, metadata)


def test_size_does_not_grow_with_ranks(tmp_path: Path) -> None:
    sizes = []
    for count in (8, 24, 1000, 10**6):
        path = tmp_path / str(count)
        write(path, to_frame(table_one(count, 48 * 5 * 1000 * count)), {"process_count": str(count)})
        sizes.append(path.stat().st_size)
    assert max(sizes) < 1.01 * min(sizes)
    assert max(sizes) < 20_000


def test_file_larger_than_limit_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compressed_traces, "MAX_BYTES", 1000)
    with pytest.raises(UsageError, match="is irregular"):
        write(tmp_path / "trace", FRAME, ABOUT)
    assert list(tmp_path.iterdir()) == []


# ---- other tools


def test_columns_carry_their_documentation(trace: Path) -> None:
    found = pq.read_schema(trace)
    assert found.names == [column.name for column in COLUMNS]
    assert [found.field(column.name).metadata[b"doc"].decode() for column in COLUMNS] == [one.doc for one in COLUMNS]
    assert found.remove_metadata() == schema().remove_metadata()


def test_page_matches_declared_structures() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert render_page(text) == text, "docs/compressed-traces.md is stale: write page(text) to it"
    assert all(f"### {structure.name}\n" in text for structure in structures())
    assert f"`{compressed_traces.VERSION}`" in text
    with pytest.raises(ValueError, match="markers"):
        render_page("no marks")


def test_queries_of_page_run_in_duckdb(trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(trace.parent)
    blocks = re.findall(r"```sql\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    with duckdb.connect() as connection:
        overview, _, offsets = (connection.execute(block).fetchall() for block in blocks)
    assert [row[3] for row in overview] == ["MPI_File_open", None, "MPI_File_seek", "MPI_File_write", "MPI_File_close"]
    assert offsets == [([600, 1560, 2520],)]


def test_polars_reads_trace(trace: Path) -> None:
    assert pl.read_parquet(trace).equals(FRAME)


# ---- other files


def test_only_compressed_traces_are_recognized(trace: Path, tmp_path: Path) -> None:
    assert is_compressed_trace(trace)
    other = tmp_path / "other.parquet"
    pl.DataFrame({"a": [1]}).write_parquet(other)
    os.mkfifo(tmp_path / "pipe")
    for path in (other, tmp_path, tmp_path / "absent", tmp_path / "pipe"):
        assert not is_compressed_trace(path)
    for content in (b"", b"PAR1", b"PAR1PAR1PAR1", b"PAR1" + b"\xff" * 4 + b"PAR1", b"x" * 100):
        other.write_bytes(content)
        assert not is_compressed_trace(other)
        refuses(other, "not a Parquet file")


def test_other_files_are_refused(trace: Path, tmp_path: Path) -> None:
    refuses(tmp_path / "absent", "is not a file")
    refuses(tmp_path, "is not a file")
    other = tmp_path / "other.parquet"
    pl.DataFrame({"a": [1]}).write_parquet(other)
    refuses(other, "not a compressed trace")
    rows = pq.read_table(trace)
    for table in (
        rows.drop_columns(["slots"]),
        rows.append_column("more", rows["node"]),
        rows.rename_columns(list("abcdefghijklm")),
    ):
        rewritten(other, table)
        refuses(other, "wrong columns")
    rewritten(other, rows.set_column(8, "level", rows["level"].cast(pa.int32())))
    refuses(other, "wrong columns")


def test_unexpected_metadata_are_refused(trace: Path) -> None:
    rows = pq.read_table(trace)
    rewritten(trace, rows)
    assert read(trace)[1] == {"process_count": "8"}
    for metadata, words in (
        ({"version": "2"}, "version 2 of its form"),
        ({"format": f"another {compressed_traces.FORMAT}"}, "not a compressed trace"),
        ({"process_count": "many"}, "no process count"),
        ({"checksum": "00000000"}, "metadata of the compressed trace are damaged"),
    ):
        rewritten(trace, rows, **metadata)
        refuses(trace, words)


def test_file_that_expands_beyond_limit_is_refused(trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Repeated rows compress to almost nothing, and a repeated number takes almost no page."""
    rows = pq.read_table(trace)
    rewritten(trace, pa.concat_tables([rows.slice(0, 1)] * 4096).combine_chunks())
    for most, small_pages in ((100_000, False), (1_000_000, True)):
        monkeypatch.setattr(compressed_traces, "MAX_BYTES", most)
        if small_pages:
            wide = pl.DataFrame(rows).head(1).select(pl.all().repeat_by(200_000).explode())
            rewritten(trace, wide.to_arrow().cast(schema()))
        with pytest.raises(InputRefused, match="exceeds the maximum size"):
            compressed_traces._table(str(trace))


# ---- damage


def outcome(path: Path, content: bytes) -> str | None:
    """Return the error that a content causes, or None if it passes. Runs in this process, so that a crash shows."""
    path.write_bytes(content)
    try:
        compressed_traces._check_file(path)
        found, metadata = compressed_traces._table(str(path))
    except (pa.ArrowException, OSError, ValueError, InputRefused) as error:
        return str(error)
    assert pl.DataFrame(found).equals(FRAME)
    assert metadata == ABOUT
    return None


def test_every_truncation_is_detected(trace: Path) -> None:
    whole = trace.read_bytes()
    for length in random.Random(1).sample(range(len(whole)), 60):
        assert outcome(trace, whole[:length]) is not None


def test_bit_flips_are_detected_or_harmless(trace: Path) -> None:
    whole, chance = trace.read_bytes(), random.Random(2)
    told = 0
    for _ in range(200):
        content = bytearray(whole)
        content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
        told += outcome(trace, bytes(content)) is not None
    assert told > 50


def test_flipped_process_count_is_detected(trace: Path) -> None:
    whole = trace.read_bytes()
    place = whole.index(b"iosig.process_count") + len("iosig.process_count")
    place = whole.index(b"8", place)
    assert "damaged" in (outcome(trace, whole[:place] + b"9" + whole[place + 1 :]) or "")


def test_damage_is_reported_as_refusal(trace: Path) -> None:
    whole = bytearray(trace.read_bytes())
    whole[200] ^= 255
    trace.write_bytes(whole)
    refuses(trace, "damaged")
    assert decode.__module__ == "iosig.warehouse.sources.extrapolations.compressed_traces"
