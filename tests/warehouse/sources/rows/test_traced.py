from datetime import UTC, datetime

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from iosig.warehouse.contracts import frames
from iosig.warehouse.contracts.traces import TRACE_FILES, TRACE_METADATA, TRACE_REQUESTS, TRACES
from iosig.warehouse.sources.protocol import Batch
from iosig.warehouse.sources.rows import traced
from iosig.warehouse.sources.rows.traced import CodedTexts, Nullable, build_batch, concat_batches


def test_missing_columns_are_null() -> None:
    batch = build_batch(
        TRACE_FILES,
        {"file_number": np.array([3, 4]), "path": ["a", "b"], "mount": "/scratch"},
        datetime(2026, 1, 2, 23, 59, tzinfo=UTC),
    )
    frames.require(batch.rows, TRACE_FILES)
    assert batch.rows["file_number"].to_list() == [3, 4]
    assert batch.rows["mount"].to_list() == ["/scratch", "/scratch"]
    assert batch.rows["ended_on"].to_list() == [datetime(2026, 1, 2).date()] * 2
    assert batch.rows["osts"].null_count() == 2


def test_scalars_make_a_single_row() -> None:
    batch = build_batch(TRACES, {"tracer": "tmio", "duration_s": 3.5})
    assert batch.rows.height == 1
    assert batch.rows["ended_on"].item() is None


def test_empty_columns_make_no_rows() -> None:
    assert build_batch(TRACE_FILES, {"file_number": np.array([], dtype=np.int64), "mount": "/"}).rows.is_empty()


def test_unknown_column_raises_key_error() -> None:
    with pytest.raises(KeyError, match="speed"):
        build_batch(TRACE_FILES, {"file_number": [1], "speed": [2.0]})


def test_columns_of_different_lengths_raise_value_error() -> None:
    with pytest.raises(ValueError, match="not of one length"):
        build_batch(TRACE_FILES, {"file_number": [1, 2], "path": ["a"]})


def requests(hosts: list[str], codes: list[int], **others: object) -> Batch:
    """Return a late batch with a request for each code; the second request has no offset."""
    numbers = np.arange(len(codes))
    known = {
        "request": numbers,
        "module": "POSIX",
        "rank": numbers,
        "direction": CodedTexts(["write", "read"], numbers % 2),
    }
    known |= {"host": CodedTexts(hosts, np.array(codes)), "offset_bytes": Nullable(numbers * 10, numbers != 1)}
    return build_batch(TRACE_REQUESTS, known | others, datetime(2026, 1, 1 + len(codes), tzinfo=UTC))


def test_coded_and_nullable_values_are_decoded() -> None:
    found = requests(["a", "b"], [1, 0, 1]).rows
    assert found["host"].to_list() == ["b", "a", "b"]
    assert found["direction"].to_list() == ["write", "read", "write"]
    assert found["offset_bytes"].to_list() == [0, None, 20]


def test_batches_of_mixed_kinds_are_concatenated_in_order() -> None:
    given = [
        requests(["a", "b"], [1, 0, 1]),
        requests(["c"], [0], request_bytes=np.array([2.5])),
        requests(["b"], [0, 0], rank=3, ost=[7, None]),
        Batch(TRACE_REQUESTS, requests(["d", "e"], [0, 1]).rows),
        requests(["f", "a"], [1, 1, 0, 0], module="MPIIO"),
        requests(["c"], [0], request_bytes=pl.Series([4.5])),
    ]
    assert [batch.height for batch in given] == [3, 1, 2, 2, 4, 1]
    whole = concat_batches(given)
    assert_frame_equal(whole, pl.concat([batch.rows for batch in given]))
    assert whole.schema == frames.schema(TRACE_REQUESTS)
    assert whole["host"].to_list() == ["b", "a", "b", "c", "b", "b", "d", "e", "a", "a", "f", "f", "c"]
    assert_frame_equal(concat_batches(given[:1]), given[0].rows)


def test_rows_are_numbered_across_batches_by_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traced, "BATCH_ROWS", 2)
    numbering = traced.Numbering()
    known = pl.DataFrame({"rank": [0, 1, 2], "direction": ["read"] * 3})
    batches = [*numbering.rows(TRACE_REQUESTS, known, module="POSIX"), *numbering.rows(TRACE_REQUESTS, known)]
    assert [batch.rows["request"].to_list() for batch in batches] == [[0, 1], [2], [3, 4], [5]]
    assert batches[1].rows.select("rank", "module").rows() == [(2, "POSIX")]
    assert list(numbering.rows(TRACE_METADATA, pl.DataFrame({"rank": []}))) == []
    assert numbering.counts == {"trace_requests": 6}


def test_files_have_given_numbers() -> None:
    (batch,) = traced.build_file_batches({"/a": 4, None: 0})
    assert batch.rows.select("file_number", "path").rows() == [(4, "/a"), (0, None)]
    assert list(traced.build_file_batches({})) == []
