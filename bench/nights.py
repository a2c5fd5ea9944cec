"""A day of a large site: landing, the whole night, and the start of commands, beside bare scans of the same polls."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from bench import day
from bench.harness import Alternative, Comparison, Context, Row, benchmark, compared, iosig, process_cost, python

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
    """Return the run of a command in a warehouse that is new each time."""
    return lambda: process_cost(iosig("--warehouse", str(context.fresh(name) / "warehouse"), *arguments))


@benchmark("landing")
def landing(context: Context) -> Iterator[Row]:
    """Land a day of polls from CSV, beside DuckDB's own COPY of the same file to Parquet."""
    csv = str(_inbox(context) / "polls.csv")
    yield from compared(
        Comparison("land a day of polls (4,147,200 rows of CSV) / DuckDB `copy` to Parquet", max_ratio=2.5),
        _in_new_warehouse(context, "landing", "land", csv),
        lambda: process_cost(python(_COPY, csv, str(context.scratch / "copy.parquet"))),
        context.rounds,
        Comparison("… peak memory", "peak_bytes", max_value=_MAX_BYTES),
    )


@benchmark("night")
def night(context: Context) -> Iterator[Row]:
    """Run the whole night, landing to release, beside a bare scan and aggregation of the same polls."""
    inbox = _inbox(context)
    settings = context.scratch / "night.toml"
    settings.write_text(f"[schedule]\ninbox = '{inbox}'\n")
    yield from compared(
        Comparison("the night of that day and 1,000 jobs / scan and aggregation of the CSV", max_ratio=5, allowance=10),
        _in_new_warehouse(context, "night", "--settings", str(settings), "run", "--inline"),
        lambda: process_cost(python(_SCAN, str(inbox / "polls.csv"))),
        context.rounds,
        Comparison("… peak memory", "peak_bytes", max_value=_MAX_BYTES),
    )
    warehouse = str(context.scratch / "night" / "warehouse")
    report = process_cost(iosig("--warehouse", warehouse, "report", "--into", str(context.scratch / "pages")))
    yield Comparison("… all pages of its report", max_value=20).row([report])


@benchmark("commands")
def commands(context: Context) -> Iterator[Row]:
    """Run whole commands, beside a Python that does nothing."""
    root = context.scratch / "demo"
    demo = process_cost(iosig("demo", "--into", str(root)))
    yield Comparison("`iosig demo`", max_value=15).row([demo])
    query = ("--warehouse", str(root / "warehouse"), "sql", "select 1")
    for name, command, max_s in (("--help", iosig("--help"), 0.5), ('sql "select 1"', iosig(*query), 1.5)):
        yield from compared(
            Comparison(f"`iosig {name}` / `python -c pass`", max_value=max_s),
            lambda command=command: process_cost(command),  # type: ignore[misc]
            lambda: process_cost(python("pass")),
            2 * context.rounds + 1,
        )
