"""Dumbbells: largest differences first, and ends only for known values."""

from __future__ import annotations

import polars as pl

from iosig.reports.site.changes import dumbbells

_ROWS = pl.DataFrame(
    [("a", 1e9, 2e9), ("b", 5e9, 5e9), ("c", None, 3e9), ("d", 4e9, None), ("e", 1e9, 8e9), ("f", None, None)],
    schema={"application_id": pl.String, "volume_bytes_before": pl.Float64, "volume_bytes": pl.Float64},
    orient="row",
).with_columns(filesystem=pl.lit("lake"), direction=pl.lit("write"))


def test_largest_differences_come_first_and_equal_values_are_omitted() -> None:
    drawn = dumbbells(_ROWS, "volume_bytes", is_volume=True)["rows"]
    assert [row["application_id"] for row in drawn] == ["c", "d", "e", "a"]
    assert [(row["before_text"], row["after_text"]) for row in drawn[:2]] == [(None, "3 GB"), ("4 GB", None)]
    assert drawn[0]["before_x"] is None


def test_places_share_a_logarithmic_scale() -> None:
    drawn = {row["application_id"]: row for row in dumbbells(_ROWS, "volume_bytes", is_volume=True)["rows"]}
    octave = drawn["a"]["after_x"] - drawn["a"]["before_x"]
    assert (
        drawn["e"]["after_x"] - drawn["e"]["before_x"] == round(3 * octave, 1)
        or abs(drawn["e"]["after_x"] - drawn["e"]["before_x"] - 3 * octave) <= 0.2
    )
    assert drawn["a"]["before_x"] == drawn["e"]["before_x"]


def test_empty_input_has_no_dumbbells() -> None:
    assert dumbbells(_ROWS.clear(), "volume_bytes", is_volume=True)["rows"] == []
