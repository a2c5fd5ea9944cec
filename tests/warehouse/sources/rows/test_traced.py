from datetime import UTC, datetime

import numpy as np
import pytest

from warehouse.contracts import frames
from warehouse.contracts.traces import TRACE_FILES, TRACES
from warehouse.sources.rows.traced import rows


def test_known_columns_are_kept_and_the_others_are_null() -> None:
    batch = rows(
        TRACE_FILES,
        {"file_number": np.array([3, 4]), "path": ["a", "b"], "mount": "/scratch"},
        datetime(2026, 1, 2, 23, 59, tzinfo=UTC),
    )
    frames.require(batch.rows, TRACE_FILES)
    assert batch.rows["file_number"].to_list() == [3, 4]
    assert batch.rows["mount"].to_list() == ["/scratch", "/scratch"]
    assert batch.rows["ended_on"].to_list() == [datetime(2026, 1, 2).date()] * 2
    assert batch.rows["osts"].null_count() == 2


def test_values_alone_are_one_row() -> None:
    batch = rows(TRACES, {"tracer": "tmio", "duration_s": 3.5})
    assert batch.rows.height == 1
    assert batch.rows["ended_on"].item() is None


def test_no_rows_are_no_rows() -> None:
    assert rows(TRACE_FILES, {"file_number": np.array([], dtype=np.int64), "mount": "/"}).rows.is_empty()


def test_a_column_that_the_table_does_not_have_is_a_fault() -> None:
    with pytest.raises(KeyError, match="speed"):
        rows(TRACE_FILES, {"file_number": [1], "speed": [2.0]})
