"""`uv run python -m bench.same_tables`: check that two checkouts produce the same tables and output.

`take DIR` runs three nights and a list of commands and keeps their results; `compare A B` compares two such folders. It
uses only the `iosig` command, so it works with any checkout.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import click
import polars as pl

from bench.table_comparison import compare_folders, in_order

_DATA = Path(os.environ.get("IOSIG_TEST_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))

# ---- commands and tables

#: content of `{settings}/NAME.toml`, by name
SETTINGS = {
    "edison": '[filesystems]\nscratch1 = "snx11025"\n\n[time_zones]\nsacct = "UTC"\n',
    "other": '[signatures]\nmethods = ["iosi_filtered", "mean"]\n\n[periods]\nmethods = ["dft"]\n',
}
#: by night: the command lines that create its release; `{into}` is a new folder, which contains the warehouse
NIGHTS: dict[str, tuple[str, ...]] = {
    "traces": (
        "--warehouse {into}/warehouse land {data}/darshan {data}/recorder {data}/tmio {data}/ccr-gpfs --json",
        "--warehouse {into}/warehouse run --inline",
    ),
    "demo": ("demo --output {into} --json",),
    "edison": (
        "--warehouse {into}/warehouse --settings {settings}/edison.toml land --json"
        " {data}/lmt/edison-snx11025_2018-02-09.h5lmt {data}/jobs/edison-2018-02-09.sacct",
        "--warehouse {into}/warehouse --settings {settings}/edison.toml run --inline",
    ),
}
#: by night and text: the command lines that run after its tables are saved
AFTER: dict[str, dict[str, tuple[str, ...]]] = {
    "traces": {
        "columns": (
            'sql --format csv "select table_name, column_name, data_type, comment from duckdb_columns()'
            ' where not internal order by all"',
        ),
        "sql": ('sql --format json "from trace_jobs order by all"', 'sql "from network_runs order by all"'),
        "export": ("export trace_counters --output {into}/trace_counters.csv",),
        "feed": ("export periods --feed --valid-days 36525 --output {into}/periods.json",),
    },
    "demo": {
        "sql": ('sql --format json "from periods order by all"', 'sql "from classes order by all"'),
        "feed": (
            "export signatures --feed --valid-days 36525 --output {into}/signatures.json",
            "export periods --feed --valid-days 36525 --output {into}/periods.json",
        ),
        "advise": (
            "advise gtc --nodes 512 --json",
            "advise u9498/gtc/512 --by correlation",
            "advise nobody/nothing/1 --json",
        ),
        "plot": ("plot signature u9498/gtc/512 --output {into}/signature.png",),
        "diff": (
            "--settings {settings}/other.toml run --inline",
            "diff {release1} {release2} --json",
            "diff {release1} {release2} --method iosi_filtered --json",
            "diff {release1} {release2}",
        ),
        "releases": ("rollback {release1}", "releases --json"),
    },
    "edison": {
        "sql": ('sql --format json "from job_io order by all"', 'sql "from polls_daily"', 'sql "drop table jobs"'),
        "releases": ("releases --json", "--settings {settings}/edison.toml run --inline"),
    },
}
_RAW = "{data}/recorder/%s/%d/raw.tar.zst"
_PERIODS_OF = {
    "tmio-8": "{data}/tmio/8.jsonl",
    "gpfs-industry": "{data}/ccr-gpfs/industry-2896041-gpfs-writes.csv",
    "dxt-fpp": "{data}/dxt/ior_posix_fpp_n8_i12_d3.darshan",
}
_OTHER_PERIODS_OF = (
    "tmio/384.msgpack",
    "tmio/custom.json",
    "ccr-gpfs/chemistry-1455991-gpfs-writes.csv",
    "darshan/e3sm_io_heatmap_only.darshan",
)
_METHODS = ("null_tested", "dft", "autocorrelation", "merged", "autoperiod", "ftio", "all")
_LARGE = "jeanbez_8_benchmark_parallel_id45195555_8-6-50011-11681279140261054765_1628283217"
#: by text: the command lines that need no warehouse
ALONE: dict[str, tuple[str, ...]] = {
    **{
        f"period-{name}": tuple(f"period {path} --method {method} --json" for method in _METHODS)
        for name, path in _PERIODS_OF.items()
    },
    "periods": tuple(
        f"period {{data}}/{path} --method {method} --json" for path in _OTHER_PERIODS_OF for method in ("all", "ftio")
    ),
    "period-others": (
        "period {data}/lmt/edison-snx11025_2018-02-09.h5lmt --direction read --json",
        "period {data}/tmio/8.jsonl --window 5:20 --sampling-hz 20 --skip-first-phase",
        "period {data}/tmio/8.jsonl --plot {into}/period.png",
        *(f"period {{data}}/darshan/bad/{name}.darshan --json" for name in ("trunc_half", "notlog", "empty0")),
    ),
    "classify": (
        "classify {data}/tmio/8.jsonl --json --signal {into}/tmio.csv --by rank",
        "classify {data}/dxt/ior_posix_fpp_n8_i12_d3.darshan --json --signal {into}/dxt.csv",
        "classify {data}/darshan/e3sm_io_heatmap_only.darshan --json",
        "classify {data}/ccr-gpfs/industry-2896041-gpfs-writes.csv --direction write --json",
        f"classify {_RAW % ('ios_posix_nn', 8)} --json",
    ),
    "predict-tmio-8": (
        "predict {data}/tmio/8.jsonl --json --automaton {into}/automaton.json",
        "predict {data}/tmio/8.jsonl --json --method dft --strategy all --detector cusum",
        "predict {data}/tmio/8.jsonl --json --strategy fixed --window-s 8 --detector clipped_cusum",
        "predict {data}/tmio/8.jsonl --json --strategy periods --detector cusum",
        "predict {data}/tmio/8.jsonl",
    ),
    "predict-tmio-384": ("predict {data}/tmio/384.msgpack --json --automaton {into}/automaton.json",),
    **{
        f"extrapolate-{program}": (
            f"compress {_RAW % (program, 8)} --output {{into}}/compressed --json",
            "expand {into}/compressed --totals --json",
            "expand {into}/compressed --rank 3",
            "classify {into}/compressed --json",
            f"extrapolate {' '.join(_RAW % (program, ranks) for ranks in (8, 12, 16, 24))} --ranks 64"
            " --output {into}/extrapolated --json",
            "expand {into}/extrapolated --totals --json",
            "expand {into}/extrapolated --rank 42",
            "replay {into}/extrapolated --dry-run --json",
            "network {into}/extrapolated --json",
        )
        for program in ("ior_posix_chunk", "ios_mpiio_n1")
    },
    "extrapolate-refused": (
        f"extrapolate {' '.join(_RAW % ('ior_posix_random', ranks) for ranks in (8, 12, 16, 24))} --ranks 64"
        " --output {into}/extrapolated --json",
    ),
    "network": (
        "network {data}/darshan/hdf5_diagonal_write_bytes_range_dxt.darshan --json"
        " --html {into}/network.html --png {into}/network.png",
        "network {data}/dxt/ior_mpiio_shared_n8_i8_d3.darshan --window 5:20",
        "network {data}/tmio/384.msgpack --windows 8 --json",
    ),
    "network-large": (f"network {{data}}/darshan/{_LARGE}.darshan --json",),
    "study": (
        "study networks --seeds 1 --json",
        "study scheduling --seeds 1 --json",
        "study periods --traces 1 --draws 2 --workers 1 --json",
        "study advice --seeds 1 --workers 1 --json",
        "study signatures --seeds 1 --part faults --workers 1 --json",
    ),
    "study-predictions": ("study predictions --seeds 1 --workers 1 --json",),
    "formats": ("land --format help",),
}

#: landed inputs that `iosig sql` reads in addition to the tables of a release
_INPUTS = ("trace_files", "trace_records", "trace_requests", "trace_metadata", "trace_calls")

#: patterns of text that differs between runs, with their replacements
CHANGING = {
    # the instant of the advice
    r'"requested_at": "[^"]*"': '"requested_at": "<now>"',
    # the age of the newest poll at that instant
    r'"load_age_s": [\d.]+': '"load_age_s": "<age>"',
    # the instant at which a prediction was made
    r'"predicted_at":"[^"]*"': '"predicted_at":"<now>"',
    # the version of the package, in feeds
    r'"code_version": "[^"]*"': '"code_version": "<version>"',
}


@dataclass(frozen=True)
class Program:
    """Runs the `iosig` command with given measurements and a scratch folder."""

    path: Path
    data: Path
    scratch: Path

    def into(self, name: str) -> Path:
        """Return the folder for the files that commands write."""
        folder = self.scratch / name
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    @cached_property
    def settings(self) -> Path:
        """The folder of settings files."""
        folder = self.into("settings")
        for name, text in SETTINGS.items():
            (folder / f"{name}.toml").write_text(text, encoding="utf-8")
        return folder

    def run(self, arguments: Sequence[str]) -> subprocess.CompletedProcess[bytes]:
        """Run the command to completion without the user's settings."""
        inherited = {
            name: value for name, value in os.environ.items() if not name.startswith(("IOSIG_", "PREFECT_", "PYTHON"))
        }
        environment = inherited | {"COLUMNS": "120", "TERM": "dumb", "TZ": "UTC", "LC_ALL": "C.UTF-8"}
        return subprocess.run([str(self.path), *arguments], env=environment, cwd=self.scratch, capture_output=True)

    def output(self, *arguments: str) -> bytes:
        """Return the command's standard output; raises ClickException if it fails."""
        completed = self.run(arguments)
        if completed.returncode:
            message = completed.stderr.decode("utf-8", "replace")[-2000:]
            raise click.ClickException(f"iosig {shlex.join(arguments)} ended with {completed.returncode}: {message}")
        return completed.stdout


@dataclass
class Texts:
    """Output and written files of a list of command lines; text that differs between runs is replaced at the end."""

    program: Program
    into: Path
    warehouse: Path | None = None
    found: dict[str, list[str]] = field(default_factory=dict)

    def say(self, name: str, line: str) -> None:
        """Run a command line and keep its exit code, its output, and the files that it wrote into the folder."""
        before = _stamps(self.into)
        arguments = [self._fill_placeholders(word) for word in shlex.split(line)]
        if self.warehouse is not None and "--warehouse" not in line and not line.startswith("demo "):
            arguments = ["--warehouse", str(self.warehouse), *arguments]
        ended = self.program.run(arguments)
        parts = [f"$ iosig {line}\nexit code {ended.returncode}\n", _text(ended.stdout)]
        if ended.returncode:
            # lines with progress bars contain times
            parts += ["stderr:\n", *(row for row in _text(ended.stderr).splitlines(True) if "━" not in row)]
        for path, stamp in _stamps(self.into).items():
            if before.get(path) != stamp:
                parts.append(f"\n{path.name}:\n{_text(path.read_bytes())}\n")
        self.found.setdefault(name, []).append("".join(parts))

    def _fill_placeholders(self, word: str) -> str:
        places = {"data": self.program.data, "into": self.into, "settings": self.program.settings}
        for name, path in places.items():
            word = word.replace(f"{{{name}}}", str(path))
        if match := re.fullmatch(r"\{release(\d+)\}", word):
            word = str(self.releases()[int(match[1]) - 1]["release_id"])
        return word

    def releases(self) -> list[dict[str, Any]]:
        """Return the warehouse's releases, oldest first; empty without a warehouse."""
        if self.warehouse is None:
            return []
        document = json.loads(self.program.output("--warehouse", str(self.warehouse), "releases", "--json"))
        # versions before 2026-11-23 print the bare list
        listed: list[dict[str, Any]] = document["releases"] if isinstance(document, dict) else document
        return listed

    def make_replacement(self) -> Callable[[str], str]:
        """Return the function that replaces this run's paths and ids in text."""
        places = {
            str(self.program.scratch): "<scratch>",
            str(self.program.data): "<data>",
            str(self.program.path.parents[1]): "<environment>",
        }
        return replacing(places, self.releases())

    def write(self, folder: Path) -> None:
        """Write each text to a file with its name."""
        replaced = self.make_replacement()
        for name, parts in self.found.items():
            (folder / f"{name}.txt").write_text(replaced("\n".join(parts)), encoding="utf-8")


def _stamps(folder: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in sorted(folder.iterdir()) if path.is_file()}


def _text(content: bytes) -> str:
    """Decode content as text; binary content becomes its hash."""
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return f"sha256 {hashlib.sha256(content).hexdigest()}\n"


def replacing(places: Mapping[str, str], releases: Sequence[Mapping[str, Any]]) -> Callable[[str], str]:
    """Return the function that replaces paths, ids and instants of releases, and parameters, with stable names.

    Differences in parameters show in the table `releases`, which is compared key by key.
    """
    exact = dict(places)
    patterns = dict(CHANGING)
    for number, release in enumerate(releases, 1):
        exact[release["release_id"]] = f"<release {number}>"
        exact |= {str(snapshot): "<snapshot>" for snapshot in release["snapshots"].values()}
        exact[json.dumps(release["parameters"])] = '"<parameters>"'
        day, clock = release["created_at"][:10], release["created_at"][11:19]
        patterns[rf"{day}[T ]{clock}[\d.]*(?:Z|\+00:00)?"] = f"<created {number}>"
    either = re.compile("|".join(re.escape(old) for old in sorted(exact, key=len, reverse=True)) or r"(?!)")

    def replace_all(text: str) -> str:
        text = either.sub(lambda match: exact[match.group()], text)
        for pattern, new in patterns.items():
            text = re.sub(pattern, lambda _, new=new: new, text)  # type: ignore[misc]
        return text

    return replace_all


def take_night(program: Program, name: str, target: Path) -> dict[str, float]:
    """Execute a nightly run, write all tables of its release, and run the queries on it; return seconds by part."""
    into = program.into(name)
    texts = Texts(program, into, into / "warehouse")
    began = time.perf_counter()
    for line in NIGHTS[name]:
        texts.say(f"{name}-night", line)
    night_s = time.perf_counter() - began
    _write_tables(program, texts, name, target / name)
    for text, lines in AFTER[name].items():
        for line in lines:
            texts.say(f"{name}-{text}", line)
    texts.write(target / "command")
    return {"night_s": night_s, "all_s": time.perf_counter() - began}


def _write_tables(program: Program, texts: Texts, name: str, folder: Path) -> None:
    """Write all tables of the current release, in an order that depends only on their rows."""
    folder.mkdir()
    query = ("--warehouse", str(texts.warehouse), "sql")
    replaced = texts.make_replacement()
    listed = pl.read_csv(program.output(*query, "show tables", "--format", "csv"))["name"]
    for table in (*listed, *(_INPUTS if name == "traces" else ())):
        content = program.output(*query, f'from "{table}"', "--format", "parquet")
        frame = _substitute(pl.read_parquet(io.BytesIO(content)), replaced)
        in_order(table, frame).write_parquet(folder / f"{table}.parquet", compression="zstd")


def _substitute(frame: pl.DataFrame, replaced: Callable[[str], str]) -> pl.DataFrame:
    for name in frame.select(pl.col(pl.String)).columns:
        texts = frame[name].drop_nulls().unique()
        changed = {text: new for text in texts if (new := replaced(text)) != text}
        if changed:
            frame = frame.with_columns(pl.col(name).replace(changed))
    return frame


def take_help(program: Program, target: Path) -> dict[str, float]:
    """Write the help of the command and of every subcommand."""
    began = time.perf_counter()
    waiting: list[tuple[str, ...]] = [()]
    while waiting:
        words = waiting.pop()
        text = program.output(*words, "--help").decode()
        (target / "command" / f"{'-'.join(('help', *words))}.txt").write_text(text, encoding="utf-8")
        _, _, listed = text.partition("\nCommands:\n")
        listed, _, _ = listed.partition("\n\n")
        waiting += [(*words, name) for name in re.findall(r"^  (\w+)", listed, re.MULTILINE)]
    return {"all_s": time.perf_counter() - began}


def take_alone(program: Program, name: str, target: Path) -> dict[str, float]:
    """Run the command lines that need no warehouse, and write their texts; return seconds by part."""
    began = time.perf_counter()
    texts = Texts(program, program.into(f"alone-{name}"))
    for line in ALONE[name]:
        texts.say(name, line)
    texts.write(target / "command")
    return {"all_s": time.perf_counter() - began}


# ---- the command


@click.group()
def same_tables() -> None:
    """Check that two checkouts produce the same tables and texts."""


@same_tables.command("take")
@click.argument("target", metavar="DIR", type=click.Path(path_type=Path, file_okay=False))
@click.option(
    "--program",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    default=Path(sys.executable).with_name("iosig"),
    show_default="the one of this environment",
    help="The iosig command to run, from any checkout.",
)
@click.option(
    "--data",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    default=_DATA,
    show_default="IOSIG_TEST_DATA, or next to the checkout",
    help="Folder of the real measurements.",
)
@click.option("--jobs", type=click.IntRange(1), default=2, show_default=True, help="Number of parallel commands.")
def take_command(target: Path, program: Path, data: Path, jobs: int) -> None:
    """Run three nights and a list of commands, and keep their tables and texts in a new folder."""
    if target.exists() and any(target.iterdir()):
        raise click.UsageError(f"{target} is not empty.")
    (target / "command").mkdir(parents=True)
    with tempfile.TemporaryDirectory(prefix="iosig-same-") as scratch, ThreadPoolExecutor(jobs) as pool:
        run = Program(program.absolute(), data.resolve(), Path(scratch).resolve())
        parts: dict[str, Callable[[], dict[str, float]]] = {}
        for name in NIGHTS:
            parts[f"night {name}"] = lambda name=name: take_night(run, name, target)  # type: ignore[misc]
        for name in ALONE:
            parts[name] = lambda name=name: take_alone(run, name, target)  # type: ignore[misc]
        parts["help"] = lambda: take_help(run, target)
        futures = {name: pool.submit(part) for name, part in parts.items()}
        times = {}
        for name, future in futures.items():
            times[name] = future.result()
            click.echo(
                f"{name}: {', '.join(f'{measure} {duration_s:.1f}' for measure, duration_s in times[name].items())}",
                err=True,
            )
    (target / "times.json").write_text(json.dumps(times, indent=1), encoding="utf-8")


@same_tables.command("compare")
@click.argument("before", metavar="A", type=click.Path(path_type=Path, file_okay=False, exists=True))
@click.argument("after", metavar="B", type=click.Path(path_type=Path, file_okay=False, exists=True))
@click.option("--lines", default=40, show_default=True, help="Maximum number of printed lines per text diff.")
def compare_command(before: Path, after: Path, lines: int) -> None:
    """Compare two folders that `take` wrote; ends with 1 if anything differs."""
    comparisons = list(compare_folders(before, after))
    if not comparisons:
        raise click.UsageError("Neither folder has tables or texts.")
    for compared in comparisons:
        for line in (*compared.report(), *compared.diff[:lines]):
            click.echo(line)
        if len(compared.diff) > lines:
            click.echo(f"… and {len(compared.diff) - lines:,} lines more")
    count = sum(bool(compared.differences) for compared in comparisons)
    click.echo(
        f"{count:,} of {len(comparisons):,} tables and texts differ."
        if count
        else f"All {len(comparisons):,} are equal."
    )
    raise SystemExit(1 if count else 0)


if __name__ == "__main__":
    same_tables()
