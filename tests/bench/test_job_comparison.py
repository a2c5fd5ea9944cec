"""The tables of `docs/job-comparison.md`, from the results of three readers for each log."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from bench.job_comparison import put, tables

SCHEMA = {
    "log": pl.String, "pydarshan": pl.String, "codes": pl.List(pl.String), "rule": pl.String,
    "is_found": pl.Boolean, "is_critical": pl.Boolean, "is_unknown": pl.Boolean,
}  # fmt: skip
ROWS = pl.DataFrame(
    [
        ("a" * 40, "1 heat map", ["M01", "P05"], "small_requests", True, True, False),
        ("a" * 40, "1 heat map", ["M01", "P05"], "metadata_storm", True, False, False),
        ("b", "no heat map", ["P06"], "small_requests", False, False, True),
        ("b", "no heat map", ["P06"], "metadata_storm", False, False, False),
        ("c", "fails", None, "small_requests", True, False, False),
        ("c", "fails", None, "metadata_storm", False, False, True),
    ],
    SCHEMA,
    orient="row",
)


def test_each_log_and_rule_has_a_row() -> None:
    lines = tables(ROWS).splitlines()
    assert lines[2:5] == [
        f"| `{'a' * 33}…` | 1 heat map | M01 P05 | **small_requests**, metadata_storm |",
        "| `b` | no heat map | P06 | nothing |",
        "| `c` | fails | fails | small_requests |",
    ]
    assert lines[-2:] == ["| `small_requests` (P05, P06) | 1 | 1 | 1 | 1 |", "| `metadata_storm` |  |  | 1 | 1 |"]


def test_tables_of_a_page_are_replaced(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("above\n<!-- bench.job_comparison: begin -->\nold\n<!-- bench.job_comparison: end -->\nbelow\n")
    put(page, "new")
    assert page.read_text().splitlines()[2] == "new"
    assert page.read_text().startswith("above\n")
    assert page.read_text().endswith("\nbelow\n")
