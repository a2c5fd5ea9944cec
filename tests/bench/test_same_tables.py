"""Every kind of difference between two folders of tables is found, and allowed differences are accepted."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from click.testing import CliRunner

from bench import same_tables, table_comparison
from bench.table_comparison import ComparisonResult, compare_folders, compare_tables, compare_texts, in_order
from iosig.warehouse.contracts import table

FRAME = pl.DataFrame(
    {
        "trace_id": ["a", "b", "c"],
        "bytes": [1, 2, None],
        "bytes_per_s": [1.5, math.nan, None],
        "bins": [[1.0, None], [], None],
        "ended_at": [datetime(2018, 2, 9, tzinfo=UTC), None, None],
        "is_sound": [True, False, None],
    }
)
RELEASE = pl.DataFrame(
    {
        "release_id": ["<release 1>"],
        "created_at": [datetime(2026, 1, 1, tzinfo=UTC)],
        "code_version": ["0.1.0"],
        "parameters": [json.dumps({"periods": {"z_score": 3.0, "tolerance": 0.8}, "polls": {}})],
    }
)


def compared(after: pl.DataFrame, before: pl.DataFrame = FRAME, name: str = "trace_jobs") -> ComparisonResult:
    return compare_tables("night", name, before, after)


def changed(column: str, values: list[Any], dtype: Any = None) -> pl.DataFrame:
    return FRAME.with_columns(pl.Series(column, values, dtype or FRAME.schema[column]))


def with_parameters(parameters: dict[str, Any]) -> pl.DataFrame:
    return RELEASE.with_columns(parameters=pl.lit(json.dumps(parameters)))


def verdict(found: ComparisonResult) -> list[str]:
    """The report without the location of the table."""
    return [line.partition(found.name)[2].lstrip(": ") for line in found.report()]


def test_equal_tables_have_no_difference() -> None:
    assert verdict(compared(FRAME.clone())) == ["equal"]
    pieces = pl.concat([FRAME.head(1), FRAME.tail(2)], rechunk=False)
    assert verdict(compared(pieces)) == ["equal"]
    zeros = [pl.DataFrame({"x": [zero, 1.0]}) for zero in (0.0, -0.0)]
    assert verdict(compared(zeros[1], zeros[0])) == ["equal"]


@pytest.mark.parametrize(
    ("column", "values", "rows", "first"),
    [
        ("bytes", [1, 3, None], 1, "b"),
        ("bytes", [None, 2, 0], 2, "a"),
        ("bytes_per_s", [1.5 + 1e-9, math.nan, None], 1, "a"),
        ("bytes_per_s", [1.5, None, None], 1, "b"),
        ("bytes_per_s", [1.5, math.inf, math.nan], 2, "b"),
        ("bins", [[1.0, 0.0], [], None], 1, "a"),
        ("bins", [[1.0 + 1e-9, None], [], None], 1, "a"),
        ("bins", [[1.0, None], [], []], 1, "c"),
        ("bins", [[1.0], [None], None], 2, "a"),
        ("ended_at", [datetime(2018, 2, 9, 0, 0, 0, 1, UTC), None, None], 1, "a"),
        ("is_sound", [True, True, None], 1, "b"),
    ],
)
def test_different_value_is_found(column: str, values: list[Any], rows: int, first: str) -> None:
    found = compared(changed(column, values))
    assert verdict(found) == [f"DIFFERS: column {column}, {rows} rows, first at trace_id {first}"]


def test_floats_may_differ_in_their_last_digits() -> None:
    found = compared(changed("bytes_per_s", [1.5 * (1 + 5e-13), math.nan, None]))
    assert (found.differences, verdict(found)) == ((), ["within 1e-12: bytes_per_s"])
    assert verdict(compared(changed("bins", [[1 + 5e-13, None], [], None]))) == ["within 1e-12: bins"]


def test_infinities_are_close_only_to_themselves() -> None:
    sides = [pl.DataFrame({"x": [value]}) for value in (math.inf, -math.inf)]
    assert compared(sides[1], sides[0]).differences
    assert verdict(compared(sides[0], sides[0])) == ["equal"]


def test_different_key_is_a_difference_of_its_column() -> None:
    assert compared(changed("trace_id", ["a", "b", "d"])).differences == (
        "column trace_id, 1 rows, first at trace_id c",
    )


@pytest.mark.parametrize(
    ("after", "told"),
    [
        (FRAME.drop("bytes"), "column bytes only in A"),
        (FRAME.with_columns(more=1), "column more only in B"),
        (FRAME.with_columns(pl.col("bytes").cast(pl.Int32)), "column bytes is Int64 in A, Int32 in B"),
        (FRAME.select(reversed(FRAME.columns)), "columns in another order"),
        (FRAME.head(2), "3 rows in A, 2 in B, first at trace_id c"),
        (FRAME.tail(2), "3 rows in A, 2 in B, first at trace_id a"),
        (FRAME.clear(), "3 rows in A, 0 in B, first at trace_id a"),
    ],
)
def test_different_shape_is_found(after: pl.DataFrame, told: str) -> None:
    found = compared(after)
    assert found.differences == (told,)


def test_ignored_columns_may_differ_but_must_exist() -> None:
    after = RELEASE.with_columns(created_at=datetime(2027, 1, 1, tzinfo=UTC), code_version=pl.lit("0.2.0"))
    after = after.cast(RELEASE.schema)
    found = compared(after, RELEASE, "releases")
    assert verdict(found) == ["equal"]
    assert compared(RELEASE.drop("created_at"), RELEASE, "releases").differences == ("column created_at only in A",)
    assert compared(after.select("code_version"), RELEASE.select("code_version"), "trace_jobs").differences


def test_parameters_may_have_additional_keys() -> None:
    after = with_parameters({"polls": {"limit": 1}, "periods": {"z_score": 3.0 * (1 + 1e-14)}})
    found = compared(after, RELEASE, "releases")
    assert found.differences == ()
    assert verdict(found) == [
        "keys of parameters only in A: periods.tolerance",
        "keys of parameters only in B: polls.limit",
    ]


@pytest.mark.parametrize("value", [4.0, 3, None, "3.0", [3.0]])
def test_common_parameters_must_be_equal(value: Any) -> None:
    after = with_parameters({"periods": {"z_score": value, "tolerance": 0.8}, "polls": {}})
    found = compared(after, RELEASE, "releases")
    assert found.differences == ("column parameters, 1 rows, first at release_id <release 1>",)


def test_texts_are_compared_line_by_line() -> None:
    same = compare_texts("x", "one\ntwo", "one\ntwo")
    assert (same.differences, same.diff) == ((), ())
    found = compare_texts("x", "one\ntwo", "one\nthree")
    assert found.differences == ("2 lines of the diff",)
    assert found.diff[2:] == ("@@ -1,2 +1,2 @@", " one", "-two", "+three")
    assert compare_texts("x", "a\tb", "a b").differences
    assert compare_texts("x", "a", "a\n").differences


def test_only_the_different_part_of_a_long_line_is_shown() -> None:
    before = json.dumps({f"field_{number}": number for number in range(1000)})
    found = compare_texts("x", before, before.replace('"field_500": 500', '"field_500": 501'))
    assert [line for line in found.diff[2:] if line[0] in "+-"] == ['- "field_500": 500,', '+ "field_500": 501,']


def test_rows_are_sorted_by_key_then_by_all_columns() -> None:
    rows = FRAME.sample(3, shuffle=True, seed=1)
    assert in_order("trace_jobs", rows).equals(FRAME)
    assert in_order("unknown", rows).equals(FRAME)
    double = pl.DataFrame({"trace_id": ["b", None, "b"], "x": [2, 0, 1]})
    assert in_order("trace_jobs", double).rows() == [("b", 1), ("b", 2), (None, 0)]


def test_ignored_columns_are_in_the_contracts() -> None:
    for name, column in [*table_comparison.LEFT_OUT, *table_comparison.JSON_COLUMNS]:
        assert table(name).column(column)


def test_ids_paths_and_instants_of_a_run_are_replaced() -> None:
    release = {
        "release_id": "2018-02-09-0123abcd",
        "created_at": "2026-11-22T13:48:09.123456+00:00",
        "snapshots": {"jobs": 6238677957652792474},
        "parameters": json.dumps({"periods": {}}),
    }
    again = release | {"release_id": "2018-02-09-0123abcd-again1", "created_at": "2026-11-22T14:00:00.000001+00:00"}
    replaced = same_tables.replacing({"/scratch/x": "<scratch>"}, [release, again])
    text = json.dumps([release, again])
    assert json.loads(replaced(text.replace("6238677957652792474", '"6238677957652792474"'))) == [
        {
            "release_id": f"<release {number}>",
            "created_at": f"<created {number}>",
            "snapshots": {"jobs": "<snapshot>"},
            "parameters": "<parameters>",
        }
        for number in (1, 2)
    ]
    path = "/scratch/x/a 2026-11-22 13:48:09 at 2026-11-22T13:48:09Z"
    assert replaced(path) == "<scratch>/a <created 1> at <created 1>"
    assert replaced('{"predicted_at":"2026-11-22T14:09:23.26Z"}') == '{"predicted_at":"<now>"}'
    assert replaced('{"requested_at": "2026-11-22T13:55:30Z", "load_age_s": 12.5}') == (
        '{"requested_at": "<now>", "load_age_s": "<age>"}'
    )
    kept = "2018-02-09 2026-11-22T13:48:10Z 1fd8e9e4a0b659b0 /scratch/y 623867795765279247"
    assert replaced(kept) == kept


def test_folders_are_compared_and_missing_files_are_listed(tmp_path: Path) -> None:
    for side, frame in (("a", FRAME), ("b", FRAME.with_columns(bytes=pl.lit(1, pl.Int64)))):
        for night in ("demo", "command"):
            (tmp_path / side / night).mkdir(parents=True)
        frame.write_parquet(tmp_path / side / "demo" / "jobs.parquet")
        FRAME.write_parquet(tmp_path / side / "demo" / "trace_jobs.parquet")
        FRAME.write_parquet(tmp_path / side / "demo" / f"only_{side}.parquet")
        (tmp_path / side / "command" / "help.txt").write_text("the same")
        (tmp_path / side / "times.json").write_text(side)
    found = {one.name: verdict(one)[0] for one in compare_folders(tmp_path / "a", tmp_path / "b")}
    assert found.keys() == {"jobs", "trace_jobs", "only_a", "only_b", "help"}
    assert found["jobs"].startswith("DIFFERS: column bytes, 2 rows")
    assert (found["only_a"], found["only_b"]) == ("DIFFERS: only in A", "DIFFERS: only in B")
    assert found["trace_jobs"] == found["help"] == "equal"
    run = CliRunner().invoke
    different = run(same_tables.same_tables, ["compare", str(tmp_path / "a"), str(tmp_path / "b")])
    assert different.exit_code == 1
    assert "3 of 5 tables and texts differ." in different.output
    assert run(same_tables.same_tables, ["compare", str(tmp_path / "a"), str(tmp_path / "a")]).exit_code == 0
    empty = str(tmp_path / "a" / "command")
    assert run(same_tables.same_tables, ["compare", empty, empty]).exit_code == 2
