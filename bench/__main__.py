"""`uv run python -m bench`: every benchmark beside its peer, as the table of `bench/README.md`."""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import tempfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path

from bench import (
    attribution,
    autoperiod,
    counter_texts,
    darshan_logs,
    day,
    dftracer_traces,
    edge_streams,
    extrapolation,
    landings,
    machines,
    network_pages,
    networks,
    periods,
    predictions,
    recorder_traces,
    signatures,
    small_traces,
    throughput,
    tmio_traces,
)
from bench.figures import Figure
from bench.processes import Cost, cost_of, in_turn, iosig, median_s, python

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
_GIGABYTE = 1e9
_DATA = Path(os.environ.get("IOSIG_TEST_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
#: topics that need the real measurements
_OF_DATA = {"autoperiod", "darshan", "extrapolation", "logs", "network", "period", "throughput"}


def landing(csv: Path, scratch: Path, rounds: int) -> Iterator[Figure]:
    """Time the landing of a day of polls from CSV, beside DuckDB's own COPY of the same file to Parquet."""

    def land() -> Cost:
        shutil.rmtree(scratch / "landing", ignore_errors=True)
        return cost_of(iosig("--warehouse", str(scratch / "landing"), "land", str(csv)))

    def copy() -> Cost:
        return cost_of(python(_COPY, str(csv), str(scratch / "copy.parquet")))

    ours, peers = in_turn(land, copy, rounds)
    ratio = median_s(ours) / median_s(peers)
    yield Figure(
        "land a day of polls (4,147,200 rows of CSV) / DuckDB `copy` to Parquet",
        f"{median_s(ours):.2f} s",
        f"{median_s(peers):.2f} s",
        f"{ratio:.2f}",
        "2.5",
        ratio <= 2.5,
    )
    yield _memory("… its peak memory", ours)


def night(inbox: Path, csv: Path, scratch: Path, rounds: int) -> Iterator[Figure]:
    """Time the whole night, landing to release, beside a bare scan and aggregation of the same polls."""
    settings = scratch / "night.toml"
    settings.write_text(f"[schedule]\ninbox = '{inbox}'\n")

    def whole() -> Cost:
        shutil.rmtree(scratch / "night", ignore_errors=True)
        return cost_of(iosig("--warehouse", str(scratch / "night"), "--settings", str(settings), "run", "--inline"))

    ours, peers = in_turn(whole, lambda: cost_of(python(_SCAN, str(csv))), rounds)
    limit = 5 * median_s(peers) + 10
    yield Figure(
        "the whole night of that day and 1,000 jobs / bare scan and aggregation of the CSV",
        f"{median_s(ours):.2f} s",
        f"{median_s(peers):.2f} s",
        f"{median_s(ours) / median_s(peers):.2f}",
        f"5 x peer + 10 s = {limit:.1f} s",
        median_s(ours) <= limit,
    )
    yield _memory("… its peak memory", ours)
    told = cost_of(iosig("--warehouse", str(scratch / "night"), "report", "--into", str(scratch / "pages")))
    yield Figure("… all pages of its report", f"{told.wall_s:.1f} s", "", "", "20 s", told.wall_s <= 20)


def _memory(name: str, costs: list[Cost]) -> Figure:
    peak = max(cost.peak_bytes for cost in costs) / _GIGABYTE
    return Figure(name, f"{peak:.2f} GB", "", "", "2 GB", peak < 2)


def commands(scratch: Path, rounds: int) -> Iterator[Figure]:
    """Time whole commands, from start to end, beside a Python that does nothing."""
    root = scratch / "demo"
    demo = cost_of(iosig("demo", "--into", str(root)))
    yield Figure("`iosig demo`", f"{demo.wall_s:.1f} s", "", "", "15 s", demo.wall_s < 15)
    idle = lambda: cost_of(python("pass"))  # noqa: E731
    for name, arguments, limit in (
        ("`iosig --help`", ("--help",), 0.5),
        ('`iosig sql "select 1"`', ("--warehouse", str(root / "warehouse"), "sql", "select 1"), 1.5),
    ):
        ours, peers = in_turn(lambda arguments=arguments: cost_of(iosig(*arguments)), idle, 2 * rounds + 1)  # type: ignore[misc]
        taken = median_s(ours)
        yield Figure(
            f"{name} / `python -c pass`",
            f"{taken:.2f} s",
            f"{median_s(peers):.2f} s",
            f"{taken / median_s(peers):.1f}",
            f"{limit} s",
            taken < limit,
        )


def topics(data: Path, scratch: Path, rounds: int) -> dict[str, Callable[[], Iterator[Figure]]]:
    """Return what can be measured, by name; `data` is the folder of real measurements."""
    inbox = scratch / "inbox"

    def of_day(measure: Callable[[Path], Iterator[Figure]]) -> Callable[[], Iterator[Figure]]:
        def measured() -> Iterator[Figure]:
            csv = inbox / "polls.csv"
            if not csv.is_file():
                inbox.mkdir()
                day.write_polls(csv)
                day.write_jobs(inbox / "jobs.sacct")
            yield from measure(csv)

        return measured

    return {
        "landing": of_day(lambda csv: landing(csv, scratch, rounds)),
        "night": of_day(lambda csv: night(inbox, csv, scratch, rounds)),
        "machines": of_day(lambda csv: machines.figures(inbox, scratch, rounds)),
        "commands": lambda: commands(scratch, rounds),
        "darshan": lambda: darshan_logs.figures(data, scratch, rounds),
        "recorder": lambda: recorder_traces.calls_per_s(scratch, rounds),
        "dftracer": lambda: dftracer_traces.events_per_s(scratch, rounds),
        "counters": lambda: counter_texts.reading(scratch, rounds),
        "extrapolation": lambda: extrapolation.figures(data, scratch, rounds),
        "network": lambda: networks.figures(data, scratch, rounds),
        "pages": lambda: network_pages.figures(scratch, rounds),
        "edges": edge_streams.streams,
        "small": lambda: small_traces.landing(scratch, rounds),
        "logs": lambda: small_traces.of_darshan(data, scratch, rounds),
        "landings": lambda: landings.planning(scratch, rounds),
        "tmio": lambda: tmio_traces.landing(scratch, rounds),
        "throughput": lambda: chain(throughput.heatmap(data, rounds), throughput.synthetic(rounds)),
        "period": lambda: periods.command(data, scratch, rounds),
        "periods": lambda: chain(periods.detection(rounds), periods.batch(rounds)),
        "predictions": lambda: predictions.figures(scratch, rounds),
        "autoperiod": lambda: autoperiod.series(data, rounds),
        "attribution": attribution.figures,
        "signatures": lambda: chain(signatures.scale(rounds), signatures.outliers(rounds), signatures.growth()),
    }


def main() -> None:
    """Run the benchmarks and print the table; say which limits do not hold."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="counted rounds of each (default 3)")
    parser.add_argument("--only", action="append", help="measure only this; may be given several times")
    parser.add_argument("--data", type=Path, default=_DATA, help="folder of the real measurements")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="iosig-bench-") as folder:
        known = topics(given.data, Path(folder), given.rounds)
        if unknown := sorted(set(given.only or ()) - known.keys()):
            parser.error(f"there is no {', '.join(unknown)}; there are {', '.join(known)}")
        print(_heading(given.rounds))
        figures = []
        for name in given.only or known:
            if name in _OF_DATA and not given.data.is_dir():
                print(f"| {name}: skipped, the real measurements are not on this machine |", flush=True)
                continue
            for figure in known[name]():
                figures.append(figure)
                holds = "yes" if figure.holds else "NO"
                cells = (figure.name, figure.ours, figure.peer, figure.ratio, figure.limit, holds)
                print("| " + " | ".join(cells) + " |", flush=True)
    raise SystemExit(0 if all(figure.holds for figure in figures) else 1)


def _heading(rounds: int) -> str:
    load = os.getloadavg()[0]
    return (
        f"Measured {datetime.now(UTC):%Y-%m-%d}, {os.cpu_count()} cores, Python {platform.python_version()}, "
        f"load average {load:.1f} at the start; medians of {rounds} rounds after one that does not count, ours and "
        "the peer's in turn.\n\n"
        "| what | ours | peer | ratio | limit | holds |\n|---|---|---|---|---|---|"
    )


if __name__ == "__main__":
    main()
