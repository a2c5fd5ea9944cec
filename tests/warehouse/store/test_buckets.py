"""Test buckets: Iceberg's hash of a column determines each row's file."""

from __future__ import annotations

import struct
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings, strategies as st

from iosig.warehouse.contracts import frames
from iosig.warehouse.contracts.signatures import SIGNATURE_POINTS
from iosig.warehouse.store.buckets import BUCKET_COUNT, compute_bucket, split_parquet
from iosig.warehouse.store.store import write_parquet
from tests.budget import examples
from tests.sql.given import rows


def murmur3(content: bytes) -> int:
    """MurmurHash3 x86_32 with seed 0, as specified by its author."""
    value, whole = 0, len(content) // 4 * 4

    def scrambled(k: int) -> int:
        k = k * 0xCC9E2D51 & 0xFFFFFFFF
        return ((k << 15 | k >> 17) & 0xFFFFFFFF) * 0x1B873593 & 0xFFFFFFFF

    for (k,) in struct.iter_unpack("<I", content[:whole]):
        value ^= scrambled(k)
        value = ((value << 13 | value >> 19) & 0xFFFFFFFF) * 5 + 0xE6546B64 & 0xFFFFFFFF
    value ^= scrambled(int.from_bytes(content[whole:], "little")) ^ len(content)
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35), (16, 1)):
        value = (value ^ value >> shift) * factor & 0xFFFFFFFF
    return value


def test_bucket_hash_matches_iceberg_specification() -> None:
    # Iceberg table specification, Appendix B: the hash of the text "iceberg" is 1210000089
    assert murmur3(b"iceberg") == 1210000089
    assert compute_bucket(pl.Series(["iceberg"])).to_list() == [1210000089 % BUCKET_COUNT]
    assert compute_bucket(pl.Series([], dtype=pl.String)).to_list() == []


@settings(max_examples=examples(100))
@given(st.lists(st.text(max_size=12), min_size=1, max_size=5))
def test_bucket_of_any_text_matches_naive_hash(texts: list[str]) -> None:
    values = pl.Series([text.encode("utf-8", "replace").decode() for text in texts])
    found = compute_bucket(values).to_list()
    assert found == [(murmur3(text.encode()) & 0x7FFFFFFF) % BUCKET_COUNT for text in values]


@pytest.fixture
def parts(tmp_path: Path) -> list[Path]:
    """Return two files of points of forty applications."""
    made = []
    for part in range(2):
        lines = (f"a{n}/x/1 {float(second)}" for n in range(part, 40, 2) for second in (0, 1))
        points = rows("transforms.signature_points", "\n".join(["application_id offset_s", *lines]))
        made.append(write_parquet(points, SIGNATURE_POINTS, tmp_path / f"{part}.parquet"))
    return made


def test_every_row_is_in_exactly_its_bucket_in_order(parts: list[Path], tmp_path: Path) -> None:
    paths = {bucket: tmp_path / "out" / f"{bucket}.parquet" for bucket in range(BUCKET_COUNT)}
    split_parquet(parts, SIGNATURE_POINTS, paths)
    whole = pl.concat(map(pl.read_parquet, parts))
    whole = whole.with_columns(bucket=compute_bucket(whole["application_id"]))
    for bucket, path in paths.items():
        expected = whole.filter(bucket=bucket).drop("bucket")
        assert path.is_file() == (not expected.is_empty())
        if path.is_file():
            assert pl.read_parquet(path).equals(expected)
            assert pl.read_parquet(path).schema == frames.schema(SIGNATURE_POINTS)
            assert not path.stat().st_mode & 0o222


def test_failed_split_leaves_no_files(parts: list[Path], tmp_path: Path) -> None:
    paths = {bucket: tmp_path / "out" / f"{bucket}.parquet" for bucket in range(BUCKET_COUNT)}
    parts[1].chmod(0o644)
    parts[1].write_bytes(parts[1].read_bytes()[:-40])
    with pytest.raises(Exception, match="arquet"):
        split_parquet(parts, SIGNATURE_POINTS, paths)
    assert list((tmp_path / "out").iterdir()) == []
