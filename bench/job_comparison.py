"""Compare PyDarshan, Drishti and `iosig job` on the same Darshan logs: the tables of `docs/job-comparison.md`.

Usage: `python -m bench.job_comparison LOG... [--output docs/job-comparison.md]`. Drishti and the PyDarshan that comes
with it run in a separate environment, which `uvx` creates.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import tempfile
from pathlib import Path

import polars as pl

from iosig.answers.findings import query as findings
from iosig.answers.single.one_input import TraceInput, open_input
from iosig.settings.model import Settings
from iosig.streams.landing import ReadOptions
from iosig.studies.pages import Table

_PEERS = ("uvx", "--python", "3.11", "--from", "drishti-io==0.8")
_CODE = re.compile(r"\[([SPM]\d\d)\]")
#: codes of Drishti that describe a run, or state that it has no issue
_NO_ISSUES = {"P01", "P02", "P03", "P04", "P12", "P14", "M04", "M05", "M08", "M10"}
#: codes of Drishti that correspond to each of our rules, for reads and writes
_RULES = {
    "aggregators_share_nodes": ("M09",),
    "blocking_io": ("M06", "M07"),
    "collective_not_used": ("M02", "M03"),
    "metadata_time": ("P17",),
    "misaligned_memory": ("P07",),
    "misaligned_requests": ("P08",),
    "random_access": ("P11", "P13"),
    "redundant_reads": ("P09",),
    "redundant_writes": ("P10",),
    "shared_file_without_mpiio": ("M01",),
    "small_requests": ("P05", "P06"),
    "stdio_used": ("S01",),
    "stragglers": ("P19",),
    "unbalanced_ranks": ("P18", "P21", "P22"),
}
_MAX_NAME_LENGTH = 34
_BEGIN, _END = "<!-- bench.job_comparison: begin -->", "<!-- bench.job_comparison: end -->"


def verdicts(log: Path) -> pl.DataFrame:
    """Return the verdicts of the three programs on a log, with one row for each of our rules.

    pydarshan: content of its summary; codes: codes of Drishti, null if it fails; is_found, is_critical, is_unknown:
    verdicts of iosig.
    """
    with open_input(log, Settings(), ReadOptions()) as trace:
        assert isinstance(trace, TraceInput)
        rows = findings.analyze_input(trace).findings
    rules = rows.group_by("rule", maintain_order=True).agg(
        is_found=(pl.col("outcome") == "found").any(),
        is_critical=((pl.col("outcome") == "found") & (pl.col("severity") == "critical")).any(),
        is_unknown=(pl.col("outcome") == "unknown").any(),
    )
    codes = pl.lit(_drishti(log), pl.List(pl.String))
    return rules.select(
        pl.lit(log.stem).alias("log"), pl.lit(_pydarshan(log)).alias("pydarshan"), codes.alias("codes"), pl.all()
    )


def _drishti(log: Path) -> list[str] | None:
    with tempfile.TemporaryDirectory() as scratch:
        command = [*_PEERS, "drishti", "--code", "--issues", str(log)]
        completed = subprocess.run(command, capture_output=True, text=True, cwd=scratch, check=False)
    return None if completed.returncode else sorted(set(_CODE.findall(completed.stdout)) - _NO_ISSUES)


def _pydarshan(log: Path) -> str:
    """Return the numbers of heat maps and warnings in PyDarshan's summary, which contains no verdicts."""
    with tempfile.TemporaryDirectory() as scratch:
        page = Path(scratch) / "summary.html"
        command = [*_PEERS, "python", "-m", "darshan", "summary", str(log), "--output", str(page)]
        completed = subprocess.run(command, capture_output=True, text=True, check=False)
        if completed.returncode or not page.exists():
            return "fails"
        text = page.read_text(encoding="utf-8", errors="replace")
    count, warnings = len(re.findall(r"<h\d[^>]*>Heat Map: ", text)), len(re.findall(r"(?i)data incomplete", text))
    maps = f"{count} heat map{'s' * (count > 1)}" if count else "no heat map"
    return f"{maps}, {warnings} warnings" if warnings else maps


def tables(rows: pl.DataFrame) -> str:
    """Return tables of the verdicts on several logs: one by log, and one by rule."""
    return "\n\n".join(table.markdown.strip() for table in (_by_log(rows), _by_rule(rows)))


def _by_log(rows: pl.DataFrame) -> Table:
    cells = []
    for (log, pydarshan), log_rows in rows.group_by(["log", "pydarshan"], maintain_order=True):
        codes = log_rows["codes"][0]
        found_rows = log_rows.filter("is_found")
        rules = [
            f"**{rule}**" if is_critical else rule
            for rule, is_critical in found_rows.select("rule", "is_critical").rows()
        ]
        name = str(log) if len(str(log)) <= _MAX_NAME_LENGTH else f"{str(log)[: _MAX_NAME_LENGTH - 1]}…"
        issues = "fails" if codes is None else " ".join(codes) or "nothing"
        cells.append((f"`{name}`", str(pydarshan), issues, ", ".join(rules) or "nothing"))
    return Table(("log", "PyDarshan", "Drishti", "`iosig job`"), cells)


def _by_rule(rows: pl.DataFrame) -> Table:
    """Count the logs in which each rule applies by both programs, by only one, or could not be evaluated by iosig."""
    codes = pl.DataFrame(
        {"rule": list(_RULES), "own": list(_RULES.values())}, {"rule": pl.String, "own": pl.List(pl.String)}
    )
    is_drishti = pl.col("codes").list.set_intersection("own").list.len().fill_null(0) > 0
    is_iosig, unknown = pl.col("is_found"), pl.col("is_unknown")
    counts = (
        rows.join(codes, on="rule", how="left")
        .group_by("rule", "own")
        .agg(
            (is_iosig & is_drishti).sum(),
            (is_drishti & ~is_iosig).sum().alias("theirs"),
            (is_iosig & ~is_drishti).sum().alias("ours"),
            (unknown & ~is_iosig).sum().alias("unknown"),
        )
        .sort(pl.col("own").is_null(), "rule")
    )
    cells = [
        (f"`{rule}`" + (f" ({', '.join(rule_codes)})" if rule_codes else ""), *(str(count or "") for count in counted))
        for rule, rule_codes, *counted in counts.rows()
    ]
    return Table(("rule", "both", "Drishti alone", "`iosig job` alone", "no answer"), cells)


def put(page: Path, tables_text: str) -> None:
    """Replace the tables of the page."""
    before, _, remaining = page.read_text(encoding="utf-8").partition(_BEGIN)
    page.write_text(f"{before}{_BEGIN}\n{tables_text}\n{_END}{remaining.partition(_END)[2]}", encoding="utf-8")


def main() -> None:
    """Compare the verdicts on logs, and print the tables or write them to the page."""
    parser = argparse.ArgumentParser(prog="python -m bench.job_comparison", description=__doc__)
    parser.add_argument("logs", nargs="+", type=Path, help="Darshan logs")
    parser.add_argument("--output", type=Path, help="the page; the tables are printed if not given")
    options = parser.parse_args()
    tables_text = tables(pl.concat([verdicts(log) for log in options.logs]))
    if options.output:
        put(options.output, tables_text)
    else:
        print(tables_text)


if __name__ == "__main__":
    main()
