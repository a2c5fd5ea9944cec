"""Facts from individual requests, compared with a naive computation."""

from __future__ import annotations

from collections import Counter

import polars as pl
from hypothesis import given, settings, strategies as st

from iosig.transforms.findings import request_facts
from tests.budget import examples
from tests.transforms.findings.made_traces import FILES, REQUESTS, rows

#: Rank, file, offset and length of requests in order of start.
REQUEST = st.tuples(st.integers(0, 2), st.integers(0, 1), st.integers(0, 30), st.integers(0, 12))


def frame(told: list[tuple[int, int, int, int]], module: str = "POSIX") -> pl.DataFrame:
    return rows(
        REQUESTS,
        *(
            {
                "module": module, "rank": rank, "host": f"h{rank % 2}", "file_number": file, "direction": "read",
                "offset_bytes": offset, "request_bytes": float(length), "start_s": float(place),
                "end_s": place + 0.5,
            }
            for place, (rank, file, offset, length) in enumerate(told)
        ),
    )  # fmt: skip


@settings(deadline=None, max_examples=examples(60))
@given(st.lists(REQUEST, min_size=1, max_size=25))
def test_counts_match_naive_implementation(told: list[tuple[int, int, int, int]]) -> None:
    ends: dict[tuple[int, int], int] = {}
    counts: Counter[str] = Counter()
    covered: set[tuple[int, int]] = set()
    for rank, file, offset, length in told:
        end = ends.get((rank, file), 0)
        counts["sequential"] += offset > 0 and offset >= end
        counts["consecutive"] += offset > 0 and offset == end
        counts["small"] += length < 5
        ends[(rank, file)] = offset + length
        covered |= {(file, byte) for byte in range(offset, offset + length)}
    row = request_facts.sizes_and_order(frame(told), 5).row(0, named=True)
    assert {name: row[f"{name}_count"] for name in counts} == dict(counts)
    assert (row["request_count"], row["moved_bytes"]) == (len(told), sum(length for *_, length in told))
    assert request_facts.distinct_bytes(frame(told))["distinct_bytes"].to_list() == [len(covered)]


@settings(deadline=None, max_examples=examples(60))
@given(st.lists(REQUEST, min_size=1, max_size=25), st.integers(1, 7))
def test_stripe_crossings_match_naive_implementation(told: list[tuple[int, int, int, int]], stripe: int) -> None:
    crossing = striped = 0
    for _, file, offset, length in told:
        if length and file == 0:
            touched = {byte // stripe for byte in range(offset, offset + length)}
            striped += 1
            crossing += len(touched) > -(-length // stripe)
    files = rows(FILES, {"file_number": 0, "stripe_bytes": stripe, "osts": [3, 4]}, {"file_number": 1})
    found = request_facts.count_crossings(frame(told), files).select("striped_count", "crossing_count").rows()
    assert found == ([(striped, crossing)] if striped else [])


def test_order_is_unknown_without_offsets() -> None:
    told = frame([(0, 0, 0, 4), (0, 0, 4, 4)]).with_columns(
        offset_bytes=pl.when(pl.col("start_s") > 0).then("offset_bytes")
    )
    row = request_facts.sizes_and_order(told, 5).row(0, named=True)
    assert (row["small_count"], row["sequential_count"], row["consecutive_count"]) == (2, None, None)
    assert request_facts.distinct_bytes(told)["distinct_bytes"].to_list() == [None]


def test_processes_and_hosts_are_counted() -> None:
    told = frame([(0, 0, 0, 4), (1, 0, 4, 4), (2, 0, 8, 0)])
    assert request_facts.count_movers(told).row(0) == ("t", "POSIX", 2, 2)
