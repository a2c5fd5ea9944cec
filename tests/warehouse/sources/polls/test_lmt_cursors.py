"""Test cursors: a cursor keeps all state that differences of later readings need."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
from hypothesis import given, settings, strategies as st

from iosig.warehouse.sources.polls.lmt_cursors import DIRECTIONS, Cursor, convert_to_readings, summarize_readings
from iosig.warehouse.sources.rows.counters import flag_server_counters
from tests.budget import examples

COUNTS = st.lists(st.integers(0, 6), min_size=2, max_size=12)


def readings(read: list[int], written: list[int]) -> pl.DataFrame:
    count = min(len(read), len(written))
    stamps = (pl.int_range(count, eager=True) * 1_000_000).cast(pl.Datetime("us", "UTC"))
    columns = {"READ_BYTES": read[:count], "WRITE_BYTES": written[:count]}
    return pl.DataFrame({"target": [0] * count, "TS_ID": range(count), **columns}).with_columns(instant=stamps)


@settings(max_examples=examples(100), deadline=None)
@given(COUNTS, COUNTS, st.integers(1, 11))
def test_counter_flags_do_not_depend_on_where_reading_resumes(read: list[int], written: list[int], cut: int) -> None:
    whole = readings(read, written)
    cut = min(cut, whole.height - 1)
    before = summarize_readings(whole[:cut], np.arange(cut) == 0, [7])
    cursor = Cursor.from_plain(json.loads(json.dumps(Cursor(cut, 5, before).plain())))
    assert cursor.counted == before
    earlier = convert_to_readings([0], [cursor.counted[7]])
    again = pl.concat([earlier.drop("is_new"), whole[cut:].select(earlier.columns[:-1])])
    for name in DIRECTIONS.values():
        expected = flag_server_counters(whole[name].to_numpy(), np.arange(whole.height) == 0)[cut:]
        found = flag_server_counters(again[name].to_numpy(), np.arange(again.height) == 0)[earlier.height :]
        assert found.tolist() == expected.tolist()
