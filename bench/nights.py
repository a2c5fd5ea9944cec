"""Benchmark a day of a large site (landing, the nightly run, commands) against bare scans of the same polls."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from bench import day
from bench.harness import (
    Alternative,
    Comparison,
    Context,
    Row,
    benchmark,
    compare_alternatives,
    iosig,
    process_cost,
    python,
)

_COPY = """
import duckdb, sys
duckdb.connect().execute("copy (select * from read_csv($csv)) to $to (format parquet, compression zstd)",
                         {"csv": sys.argv[1], "to": sys.argv[2]})
"""
_SCAN = """
import duckdb, sys
duckdb.connect().execute('''
    select polled_at, sum(read_bytes_per_s), sum(write_bytes_per_s), count(*) from read_csv($csv) group by polled_at
''', {"csv": sys.argv[1]}).fetchall()
"""
_MAX_BYTES = 2e9


def _inbox(context: Context) -> Path:
    """Return the folder of the day's polls and job log, written once."""
    inbox = context.scratch / "inbox"
    if not inbox.is_dir():
        inbox.mkdir()
        day.write_polls(inbox / "polls.csv")
        day.write_jobs(inbox / "jobs.sacct")
    return inbox


def _in_new_warehouse(context: Context, name: str, *arguments: str) -> Alternative:
    """Return a function that runs a command in a new warehouse at each call."""
    return lambda: process_cost(iosig("--warehouse", str(context.fresh(name) / "warehouse"), *arguments))


@benchmark("landing")
def landing(context: Context) -> Iterator[Row]:
    """Land a day of polls from CSV, compared with DuckDB's own COPY of the same file to Parquet."""
    csv = str(_inbox(context) / "polls.csv")
    yield from compare_alternatives(
        Comparison("land a day of polls (4,147,200 rows of CSV) / DuckDB `copy` to Parquet", max_ratio=2.5),
        _in_new_warehouse(context, "landing", "land", csv),
        lambda: process_cost(python(_COPY, csv, str(context.scratch / "copy.parquet"))),
        context.rounds,
        Comparison("… peak memory", "peak_bytes", max_value=_MAX_BYTES),
    )


@benchmark("night")
def night(context: Context) -> Iterator[Row]:
    """Execute the nightly run, from landing to release, compared with a bare scan and aggregation of the same polls."""
    inbox = _inbox(context)
    settings = context.scratch / "night.toml"
    settings.write_text(f"[schedule]\ninbox = '{inbox}'\n")
    yield from compare_alternatives(
        Comparison("the night of that day and 1,000 jobs / scan and aggregation of the CSV", max_ratio=5, allowance=10),
        _in_new_warehouse(context, "night", "--settings", str(settings), "run", "--inline"),
        lambda: process_cost(python(_SCAN, str(inbox / "polls.csv"))),
        context.rounds,
        Comparison("… peak memory", "peak_bytes", max_value=_MAX_BYTES),
    )
    warehouse = str(context.scratch / "night" / "warehouse")
    report = process_cost(iosig("--warehouse", warehouse, "report", "--output", str(context.scratch / "pages")))
    yield Comparison("… all pages of its report", max_value=20).row([report])


@benchmark("small-night")
def small_night(context: Context) -> Iterator[Row]:
    """Execute a nightly run of 6 jobs and 1,800 polls, compared with its one import of Great Expectations."""
    inbox = context.fresh("small-inbox")
    day.write_polls(inbox / "polls.csv", controller_count=1, poll_count=1_800)
    day.write_jobs(inbox / "jobs.sacct", job_count=6)
    settings = context.scratch / "small.toml"
    settings.write_text(f"[schedule]\ninbox = '{inbox}'\n")
    night = ("--settings", str(settings), "run", "--inline")
    yield from compare_alternatives(
        Comparison("a night of 6 jobs and 1,800 polls / import of Great Expectations", max_ratio=1, allowance=4),
        _in_new_warehouse(context, "small", *night),
        lambda: process_cost(python("import great_expectations")),
        context.rounds,
        Comparison("… processor time", "cpu_s", max_ratio=1, allowance=5),
    )
    command = iosig("--warehouse", str(context.scratch / "small" / "warehouse"), *night)
    costs = [process_cost(command) for _ in range(context.rounds)]
    yield Comparison("… again, without new inputs", max_value=1).row(costs)


@benchmark("commands")
def commands(context: Context) -> Iterator[Row]:
    """Run several commands to completion, compared with the start of an empty Python program."""
    root = context.scratch / "demo"
    demo = process_cost(iosig("demo", "--output", str(root)))
    yield Comparison("`iosig demo`", max_value=15).row([demo])
    warehouse = ("--warehouse", str(root / "warehouse"))
    measured = (
        ("--help", iosig("--help"), 0.15),
        ("status", iosig(*warehouse, "status"), 0.6),
        ('sql "select 1"', iosig(*warehouse, "sql", "select 1"), 0.4),
    )
    for name, command, max_s in measured:
        yield from compare_alternatives(
            Comparison(f"`iosig {name}` / `python -c pass`", max_value=max_s),
            # the exit code 7 of `status` means that the demo's polls are old
            lambda command=command: process_cost(command, exit_codes=(0, 7)),  # type: ignore[misc]
            lambda: process_cost(python("pass")),
            2 * context.rounds + 1,
        )
