"""Test rows of request events: clocks, layers and cells of any type; each invalid row has a reason."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl
import pytest

from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.events.rows import (
    KNOWN_LAYERS,
    ROWS,
    Clock,
    Layers,
    convert_types,
    find_clock,
    locate,
    sift_rows,
)

GOOD: dict[str, Any] = {
    "layer": "application",
    "node": "3",
    "rank": "3",
    "request_id": "a",
    "event": "Request",
    "start_s": "1.5",
    "end_s": "2.5",
}


def read(*rows: dict[str, Any], clock: Clock = "seconds", zone: str = "UTC") -> tuple[pl.DataFrame, list[str]]:
    """Return the good rows, and the reasons of the refused rows."""
    frame = pl.DataFrame(list(rows), infer_schema_length=None).with_row_index("line", offset=1)
    are_numbered = "layer_number" in frame.columns
    found = sift_rows(
        *convert_types(frame.with_columns(pl.col("line").cast(pl.Int64)), clock, zone, are_numbered=are_numbered),
        Layers(are_numbered=are_numbered),
    )
    assert found.rows.drop("line").schema == ROWS
    assert found.refused["remedy"].null_count() == 0
    return found.rows, found.refused["reason"].to_list()


def test_text_is_converted_to_values() -> None:
    rows, refused = read(GOOD | {"bytes": " 1e3 ", "direction": "WRITE", "is_collective": "True", "file": "/a"})
    assert refused == []
    row = rows.row(0, named=True)
    assert (row["layer_number"], row["event_kind"], row["rank"], row["start"], row["end"]) == (
        0,
        "request",
        3,
        1.5,
        2.5,
    )
    assert (row["event_bytes"], row["direction"], row["is_collective"], row["path"]) == (1000.0, "write", True, "/a")
    assert (row["peer"], row["line"]) == (None, 1)


def test_typed_columns_are_converted_to_same_values() -> None:
    text, _ = read(GOOD | {"bytes": "5", "is_collective": "1"})
    plain, refused = read(
        GOOD | {"rank": 3.0, "start_s": 1.5, "end_s": 2.5, "bytes": 5, "is_collective": True, "node": 3}
    )
    assert refused == []
    assert plain.equals(text)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"layer": " "}, "layer is missing"),
        ({"layer": "disk"}, "position of the layer `disk` is unknown"),
        ({"rank": None}, "rank is missing"),
        ({"rank": "x"}, "`x` is not a number; the column is rank"),
        ({"rank": "-1"}, "rank -1"),
        ({"rank": "9999999999"}, "rank 9999999999"),
        ({"rank": 2.5}, "not a number"),
        ({"request_id": ""}, "request_id is missing"),
        ({"event": None}, "event is missing"),
        ({"start_s": ""}, "`` is not a number; the column is start_s"),
        ({"start_s": "noon"}, "`noon` is not a number; the column is start_s"),
        ({"start_s": "nan"}, "start_s"),
        ({"end_s": "inf"}, "end_s"),
        ({"end_s": "2e9"}, "`2e9` is not a number; the column is end_s"),
        ({"start_s": "3"}, "ends before it begins"),
        ({"bytes": "many"}, "`many` is not a number"),
        ({"bytes": "-1"}, "non-negative"),
        ({"bytes": "nan"}, "non-negative"),
        ({"direction": "up"}, "direction `up`"),
        ({"is_collective": "perhaps"}, "neither true nor false"),
        ({"layer_number": "64"}, "layer_number 64"),
        ({"layer_number": "x"}, "`x` is not a number"),
        ({"layer_number": None}, "layer_number is missing"),
    ],
)
def test_invalid_row_has_a_reason(change: dict[str, Any], reason: str) -> None:
    rows, (said,) = read(GOOD | change)
    assert rows.is_empty()
    assert reason in said


def test_only_an_open_needs_no_request() -> None:
    rows, refused = read(GOOD | {"request_id": None, "event": "open"})
    assert (rows.height, refused) == (1, [])


def test_known_layers_need_no_number() -> None:
    rows, refused = read(*({**GOOD, "layer": name.upper()} for name in reversed(KNOWN_LAYERS)))
    assert refused == []
    assert rows["layer_number"].to_list() == [4, 3, 2, 1, 0]


def test_layer_names_and_numbers_must_be_unique() -> None:
    pairs = [("a", "2"), ("b", "5"), ("a", "2"), ("a", "5"), ("c", "2"), ("b", "5")]
    rows, refused = read(*({**GOOD, "layer": layer, "layer_number": number} for layer, number in pairs))
    assert rows["line"].to_list() == [1, 2, 3, 6]
    assert len(refused) == 2


@pytest.mark.parametrize(
    ("times", "clock"),
    [
        (["1.5", "2", None], "seconds"),
        ([1.5, 2e9, 0.0], "seconds"),
        (["1700000000.5", "1700000001"], "epoch"),
        (["2026-01-02T00:00:00Z", "2026-01-02T00:00:00Z", "7"], "instants"),
        ([datetime(2026, 1, 2)], "instants"),
        ([None], "seconds"),
    ],
)
def test_clock_is_inferred_from_times(times: list[object], clock: Clock) -> None:
    assert find_clock(pl.Series(times)) == clock


@pytest.mark.parametrize(
    ("began", "zone", "expected"),
    [
        ("2026-01-02T03:04:05.123456Z", "UTC", datetime(2026, 1, 2, 3, 4, 5, 123456, UTC)),
        ("2026-01-02 03:04:05", "Europe/Berlin", datetime(2026, 1, 2, 2, 4, 5, 0, UTC)),
        (datetime(2026, 1, 2, 3, 4, 5), "Europe/Berlin", datetime(2026, 1, 2, 2, 4, 5, 0, UTC)),
        (datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), "Europe/Berlin", datetime(2026, 1, 2, 3, 4, 5, 0, UTC)),
    ],
)
def test_instants_are_microseconds_since_1970(began: object, zone: str, expected: datetime) -> None:
    rows, refused = read(GOOD | {"start_s": began, "end_s": began}, clock="instants", zone=zone)
    assert refused == []
    assert timedelta(microseconds=rows["start"][0]) == expected - datetime(1970, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize("began", ["", "yesterday", "2026-03-29T02:30:00", None, datetime(1960, 1, 1)])
def test_invalid_instant_is_refused(began: object) -> None:
    good = "2026-03-29T05:00:00" if not isinstance(began, datetime) else datetime(2026, 1, 1)
    rows, (reason,) = read(GOOD | {"start_s": began, "end_s": good}, clock="instants", zone="Europe/Berlin")
    assert rows.is_empty()
    assert "start" in reason


def test_epoch_seconds_must_lie_between_1970_and_2261() -> None:
    rows, refused = read(*({**GOOD, "start_s": began, "end_s": 1e10} for began in (1.7e9, -1.0, 1e11)), clock="epoch")
    assert rows["line"].to_list() == []
    assert len(refused) == 3
    assert len(read(GOOD | {"start_s": 1.7e9, "end_s": 1.8e9}, clock="epoch")[0]) == 1


def test_columns_of_nested_values_are_refused() -> None:
    with pytest.raises(InputRefused, match="node"):
        read(GOOD | {"node": ["a"]})


def test_table_without_required_columns_is_refused() -> None:
    with pytest.raises(InputRefused, match="no column rank, event"):
        locate([name for name in GOOD if name not in ("rank", "event")])
    assert list(locate([*GOOD, "peer", "x"])) == [*GOOD, "peer"]
