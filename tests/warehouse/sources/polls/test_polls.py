from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime
from typing import Any

import polars as pl
import pytest

from iosig.warehouse.contracts import frames
from iosig.warehouse.contracts.polls import POLLS
from iosig.warehouse.errors import InputRefused, UsageError
from iosig.warehouse.sources.polls import polls
from iosig.warehouse.sources.polls.polls import REQUIRED, convert_types, fill_intervals, instants, locate, read_rows
from iosig.warehouse.sources.protocol import Reading
from iosig.warehouse.sources.rows.rejects import REJECT_SCHEMA, ParsedRows
from tests.warehouse.sources.batch_reading import gathered

ZERO = 1767225600


def at(second: float) -> datetime:
    return datetime.fromtimestamp(ZERO + second, UTC)


def table(**columns: Any) -> pl.DataFrame:
    """Return a table of two polls under the default names, with the given columns added or replaced."""
    given = {
        "polled_at": [ZERO + 2, ZERO + 4],
        "controller": ["a", "b"],
        "read_bytes_per_s": [1.0, 2.0],
        "write_bytes_per_s": [3.0, 4.0],
        "line": [2, 3],
    }
    return pl.DataFrame(given | columns)


def parted(rows: pl.DataFrame) -> ParsedRows:
    """Return the accepted and the refused rows of a table."""
    found = read_rows(rows if "raw" in rows.columns else rows.with_columns(raw=pl.lit("row")), Reading("x"))
    assert found is not None
    return found


def piece(*seconds: float, filesystem: str = "x", interval_s: float | None = None, first_line: int = 1) -> ParsedRows:
    """Return polls of a controller at these seconds."""
    schema = frames.schema(POLLS)
    rows = pl.DataFrame(
        {
            "polled_at": pl.Series([at(second) for second in seconds], dtype=schema["polled_at"]),
            "line": pl.int_range(first_line, first_line + len(seconds), dtype=pl.Int64, eager=True),
        }
    ).with_columns(
        pl.lit(filesystem).alias("filesystem"),
        pl.lit("a").alias("controller"),
        pl.lit(interval_s, pl.Float64).alias("interval_s"),
        *(pl.lit(1.0).alias(name) for name in REQUIRED[2:]),
        *(pl.lit(None, schema[name]).alias(name) for name in ("read_iops", "write_iops", "flag")),
    )
    return ParsedRows(rows.select(*POLLS.column_names, "line"), REJECT_SCHEMA.to_frame())


def intervals(*pieces: ParsedRows) -> dict[str, list[float]]:
    rows, _ = gathered(fill_intervals(lambda: iter(pieces)))
    found = rows.group_by("filesystem").agg(pl.col("interval_s").unique().sort())
    return dict(found.rows())


# ---- columns


def test_columns_have_default_names_unless_mapped() -> None:
    assert locate([*REQUIRED, "other", "read_iops"], Reading(time_zone="UTC")) == {
        name: name for name in (*REQUIRED, "read_iops")
    }
    reading = Reading(time_zone="UTC", columns={"polled_at": "ts", "interval_s": "dt"})
    found = locate(["ts", "polled_at", "dt", "interval_s", *REQUIRED[1:]], reading)
    assert (found["polled_at"], found["interval_s"], found["controller"]) == ("ts", "dt", "controller")


@pytest.mark.parametrize(
    ("names", "columns", "absent"),
    [
        (REQUIRED[:3], {}, "write_bytes_per_s"),
        ((), {}, "polled_at, controller, read_bytes_per_s, write_bytes_per_s"),
        (REQUIRED, {"polled_at": "ts"}, "ts"),
        (REQUIRED, {"interval_s": "dt"}, "dt"),
    ],
)
def test_missing_columns_are_named(names: tuple[str, ...], columns: dict[str, str], absent: str) -> None:
    with pytest.raises(InputRefused, match=rf"no column {absent}\."):
        locate(names, Reading(time_zone="UTC", columns=columns))


# ---- times


@pytest.mark.parametrize(
    ("text", "second"),
    [
        ("2026-01-01T00:00:02Z", 2),
        ("2026-01-01 00:00:02", 2),
        ("2026-01-01 00:00:02.25", 2.25),
        ("2026-01-01T01:00:02+01:00", 2),
        ("2025-12-31 19:00:02-0500", 2),
        ("2026-01-01 00:00:02+00", 2),
        ("2026-01-01 00:00:02.5 -03", 3 * 3600 + 2.5),
        (" 1767225602 ", 2),
        ("1767225602.25", 2.25),
    ],
)
def test_text_times_are_iso_or_epoch_seconds(text: str, second: float) -> None:
    found = instants(pl.Series([text]), "UTC")
    assert found.columns == ["polled_at"]
    assert found["polled_at"].to_list() == [at(second)]


@pytest.mark.parametrize(
    ("times", "second"),
    [
        (pl.Series([ZERO], dtype=pl.UInt32), 0),
        (pl.Series([ZERO + 0.25]), 0.25),
        (pl.Series([date(2026, 1, 2)]), 86400),
        (pl.Series([datetime(2026, 1, 1, 0, 0, 2)], dtype=pl.Datetime("ns")), 2),
        (pl.Series([datetime(2026, 1, 1, 9, 0, 2)]).dt.replace_time_zone("Asia/Tokyo"), 2),
    ],
)
def test_typed_times_are_converted(times: pl.Series, second: float) -> None:
    assert instants(times, "UTC")["polled_at"].to_list() == [at(second)]


def test_explicit_time_zone_takes_precedence_over_setting() -> None:
    texts = pl.Series(["2026-01-01 00:00:00", "2026-01-01 00:00:00Z", str(ZERO)])
    assert instants(texts, "Asia/Tokyo")["polled_at"].to_list() == [at(-9 * 3600), at(0), at(0)]
    naive = pl.Series([datetime(2026, 1, 1), None])
    assert instants(naive, "Asia/Tokyo")["polled_at"].to_list() == [at(-9 * 3600), None]


@pytest.mark.parametrize("of_type", [pl.String, pl.Datetime("us")])
def test_nonexistent_or_ambiguous_local_times_are_refused(of_type: pl.DataType) -> None:
    times = ["2026-03-29 01:59:58", "2026-03-29 02:30:00", "2026-10-25 02:30:00", "2026-10-25 03:00:00"]
    series = pl.Series(times)
    found = instants(series if of_type == pl.String else series.str.to_datetime(time_unit="us"), "Europe/Berlin")
    good = [datetime(2026, 3, 29, 0, 59, 58, tzinfo=UTC), datetime(2026, 10, 25, 2, tzinfo=UTC)]
    assert found["polled_at"].to_list() == [good[0], None, None, good[1]]
    for column in ("reason", "remedy"):
        assert found[column].is_not_null().to_list() == [False, True, True, False]


@pytest.mark.parametrize("bad", [-1.0, float("nan"), float("inf"), 1e300, 1767225600000.0])
def test_numbers_out_of_range_are_not_epoch_seconds(bad: float) -> None:
    found = instants(pl.Series([ZERO + 0.0, bad, None]), "UTC")
    assert found["polled_at"].to_list() == [at(0), None, None]
    assert found["reason"].is_not_null().to_list() == [False, True, False]


def test_repeated_texts_are_parsed_in_place() -> None:
    texts = pl.Series([*["1767225601"] * 3, None, None, "x", "1767225602", "1767225601", "x"])
    found = instants(texts, "UTC")
    assert found["polled_at"].to_list() == [at(1)] * 3 + [None] * 3 + [at(2), at(1), None]
    assert found["reason"].is_not_null().to_list() == [text == "x" for text in texts]


def test_columns_without_times_are_refused() -> None:
    for times in (pl.Series([True]), pl.Series([[1]]), pl.Series([date(2026, 1, 1) - date(2025, 1, 1)])):
        with pytest.raises(InputRefused, match="poll times are of type"):
            instants(times, "UTC")


# ---- rows


def test_unknown_time_zone_raises_usage_error() -> None:
    with pytest.raises(UsageError, match="Mars"):
        convert_types(table(), Reading(time_zone="Mars/Base"))


def test_filesystem_comes_from_row_setting_or_default() -> None:
    with_column = table(filesystem=[" home ", " "])
    for reading, expected in ((Reading("mine"), "mine"), (Reading(time_zone="UTC"), "default")):
        assert convert_types(with_column, reading)[0]["filesystem"].to_list() == ["home", expected]
        assert convert_types(table(), reading)[0]["filesystem"].to_list() == [expected] * 2


def test_invalid_rows_are_refused_and_missing_rates_are_flagged() -> None:
    rows = table(read_bytes_per_s=["1e3", "fast"], write_bytes_per_s=[None, 4.0], raw=["r1", "r2"])
    found = parted(rows)
    assert found.rows.select("line", "read_bytes_per_s", "write_bytes_per_s", "flag").rows() == [
        (2, 1000.0, None, "missing")
    ]
    assert found.refused.select("line", "raw").rows() == [(3, "r2")]
    assert "`fast` is not a number; the column is read_bytes_per_s" in found.refused["reason"][0]
    assert read_rows(rows.drop("raw"), Reading(time_zone="UTC")) is None, "there is nothing to show"


# ---- intervals


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        ([0, 2, 4, 6, 16, 26], 2.0),
        ([6, 0, 4, 2, 0, 6], 2.0),
        ([0, 10, 20, 60], 10.0),
        ([0, 2, 12, 14, 24], 2.0),
        ([0, 10, 12], 2.0),
        ([0, 7], 7.0),
        ([0, 0.5, 1.0], 0.5),
    ],
)
def test_interval_is_most_common_distance_or_smallest_on_ties(seconds: list[float], expected: float) -> None:
    assert intervals(piece(*seconds)) == {"x": [expected]}
    cut = [piece(second, first_line=index + 1) for index, second in enumerate(seconds)]
    assert intervals(*cut) == {"x": [expected]}


def test_each_filesystem_has_a_separate_interval() -> None:
    fast, slow = piece(0, 2, 4), piece(0, 10, 20, filesystem="y", first_line=4)
    assert intervals(fast, slow) == {"x": [2.0], "y": [10.0]}
    both = ParsedRows(pl.concat([slow.rows, fast.rows]).sort("polled_at"), REJECT_SCHEMA.to_frame())
    assert intervals(both) == {"x": [2.0], "y": [10.0]}


def test_input_with_single_instant_is_refused() -> None:
    with pytest.raises(InputRefused, match="interval is unknown"):
        intervals(piece(3, 3), piece(5, filesystem="y"))
    rows, refused = gathered(fill_intervals(lambda: iter([piece(0, 2), piece(5, filesystem="y", first_line=3)])))
    assert rows["filesystem"].unique().to_list() == ["x"]
    assert refused.select("line", "remedy").rows() == [(3, "Add the column interval_s.")]


def test_explicit_interval_takes_precedence() -> None:
    assert intervals(piece(3, interval_s=7.0)) == {"x": [7.0]}
    assert intervals(piece(0, 2, 4), piece(6, interval_s=7.0, first_line=4)) == {"x": [2.0, 7.0]}
    mixed = ParsedRows(pl.concat([piece(0, 2).rows, piece(4, interval_s=7.0).rows]), REJECT_SCHEMA.to_frame())
    rows, _ = gathered(fill_intervals(lambda: iter([mixed])))
    assert rows["interval_s"].to_list() == [2.0, 2.0, 7.0]
    # An instant with an interval determines nothing for other rows.
    rows, refused = gathered(fill_intervals(lambda: iter([piece(3, interval_s=7.0), piece(3, first_line=2)])))
    assert (rows.height, refused["line"].to_list()) == (1, [2])


def test_refused_row_does_not_affect_interval() -> None:
    rows = table(polled_at=[ZERO, ZERO + 1], read_bytes_per_s=[1.0, -1.0])
    with pytest.raises(InputRefused, match="interval is unknown"):
        list(fill_intervals(lambda: iter([parted(rows)])))


def test_batches_with_explicit_intervals_are_not_buffered() -> None:
    def pieces() -> Iterator[ParsedRows]:
        yield piece(0, 2, interval_s=2.0)
        pytest.fail("the first piece was held back")

    assert next(fill_intervals(pieces)).rows.height == 2


def test_refused_rows_are_returned_and_empty_input_yields_nothing() -> None:
    refusing = parted(table(controller=[None, "b"]))
    rows, refused = gathered(fill_intervals(lambda: iter([refusing, piece(9)])))
    assert refused["line"].to_list() == [2]
    assert rows["interval_s"].to_list() == [5.0, 5.0]
    assert list(fill_intervals(lambda: iter([]))) == []


@pytest.mark.parametrize(("held_rows", "read_count"), [(100, 1), (5, 1), (4, 2), (0, 2)])
def test_input_is_read_again_only_if_it_exceeds_the_buffer(
    monkeypatch: pytest.MonkeyPatch, held_rows: int, read_count: int
) -> None:
    monkeypatch.setattr(polls, "MAX_BUFFERED_ROWS", held_rows)
    refusing = parted(table(polled_at=[ZERO + 8, ZERO + 10], controller=["a", None]))
    pieces = [piece(0, 2), piece(4, 6), refusing]
    reads = 0

    def read() -> Iterator[ParsedRows]:
        nonlocal reads
        reads += 1
        yield from pieces

    rows, refused = gathered(fill_intervals(read))
    assert reads == read_count
    assert rows["polled_at"].sort().to_list() == [at(second) for second in range(0, 10, 2)]
    assert rows["interval_s"].unique().to_list() == [2.0]
    assert refused["line"].to_list() == [3]
