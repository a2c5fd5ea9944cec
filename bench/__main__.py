"""`uv run python -m bench`: run every benchmark and print the table of `bench/README.md`."""

from __future__ import annotations

import argparse
import os
import platform
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from bench import networks, nights, periods, predictions, readers, signatures  # noqa: F401  (registers benchmarks)
from bench.harness import BENCHMARKS, Context

_DATA = Path(os.environ.get("IOSIG_TEST_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))


def main() -> None:
    """Run the benchmarks and print the table; exit with 1 if a limit does not hold."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="counted rounds of each (default 3)")
    parser.add_argument("--only", action="append", choices=BENCHMARKS, help="run only this; may be repeated")
    parser.add_argument("--data", type=Path, default=_DATA, help="folder of the real measurements")
    options = parser.parse_args()
    print(
        f"Measured {datetime.now(UTC):%Y-%m-%d}, {os.cpu_count()} cores, Python {platform.python_version()}, compiled "
        f"bytecode, load average {os.getloadavg()[0]:.1f} at the start; medians [and ranges] of {options.rounds} "
        "rounds after a warm-up, ours and the peer's in alternation.\n\n"
        "| what | ours | peer | ratio | limit | holds |\n|---|---|---|---|---|---|"
    )
    is_ok = True
    with tempfile.TemporaryDirectory(prefix="iosig-bench-") as folder:
        context = Context(options.data, Path(folder), options.rounds)
        for name in options.only or BENCHMARKS:
            if BENCHMARKS[name].is_of_data and not options.data.is_dir():
                print(f"| {name}: skipped, the real measurements are not on this machine |", flush=True)
                continue
            for row in BENCHMARKS[name].run(context):
                print(row.markdown, flush=True)
                is_ok &= row.holds
    raise SystemExit(0 if is_ok else 1)


if __name__ == "__main__":
    main()
