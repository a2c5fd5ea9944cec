"""What PyDarshan, Drishti and `iosig job` say of the same Darshan logs, as the table of `docs/job-comparison.md`.

`uv run python -m bench.findings --peers PREFIX LOG... [--into PAGE]`, where PREFIX is a virtual environment that has
drishti-io (it brings PyDarshan with it): `python -m venv PREFIX && PREFIX/bin/pip install drishti-io==0.8`.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from iosig.answers.findings import query as findings
from iosig.answers.single.one_input import TraceInput, opened
from iosig.settings.model import Settings
from iosig.streams.landing import Told

_CODE = re.compile(r"\[([SPM]\d\d)\]")
_LONGEST_S = 600
#: of Drishti's codes those that say what a run is like, or that all is well
_NO_ISSUES = frozenset({"P01", "P02", "P03", "P04", "P12", "P14", "M04", "M05", "M08", "M10"})
#: codes of Drishti's by our rules; the read one, the write one
_RULES = {
    "small_requests": ("P05", "P06"),
    "random_access": ("P11", "P13"),
    "misaligned_requests": ("P08",),
    "misaligned_memory": ("P07",),
    "unbalanced_ranks": ("P18", "P21", "P22"),
    "stragglers": ("P19",),
    "redundant_reads": ("P09",),
    "redundant_writes": ("P10",),
    "collective_not_used": ("M02", "M03"),
    "blocking_io": ("M06", "M07"),
    "shared_file_without_mpiio": ("M01",),
    "aggregators_share_nodes": ("M09",),
    "stdio_used": ("S01",),
    "metadata_time": ("P17",),
}
_SHOWN_CHARACTERS = 34
_BEGIN, _END = "<!-- made by bench.findings: from here -->", "<!-- made by bench.findings: to here -->"


@dataclass(frozen=True, slots=True)
class Said:
    """What each says of a log: PyDarshan's pictures and warnings, Drishti's codes (None: it failed), our findings."""

    name: str
    pydarshan: str
    drishti: tuple[str, ...] | None
    found: pl.DataFrame

    @property
    def rules(self) -> dict[str, list[str]]:
        """Our rules that hold, with their severities."""
        rows: dict[str, list[str]] = {}
        for row in self.found.filter(outcome="found").to_dicts():
            rows.setdefault(row["rule"], []).append(row["severity"])
        return rows


def said_of(log: Path, peers: Path) -> Said:
    """Ask all three about a log."""
    with opened(log, Settings(), Told()) as trace:
        assert isinstance(trace, TraceInput)
        found = findings.of_input(trace).findings
    return Said(log.name, _pydarshan(log, peers), _drishti(log, peers), found)


def _drishti(log: Path, peers: Path) -> tuple[str, ...] | None:
    command = [str(peers / "bin/drishti"), "--code", "--issues", str(log)]
    with tempfile.TemporaryDirectory() as scratch:
        done = subprocess.run(command, capture_output=True, text=True, cwd=scratch, timeout=_LONGEST_S, check=False)
    return None if done.returncode else tuple(dict.fromkeys(_CODE.findall(done.stdout)))


def _pydarshan(log: Path, peers: Path) -> str:
    """Return what is drawn and warned of in PyDarshan's summary: it judges nothing."""
    with tempfile.TemporaryDirectory() as scratch:
        page = Path(scratch) / "summary.html"
        command = [str(peers / "bin/python"), "-m", "darshan", "summary", str(log), "--output", str(page)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=_LONGEST_S, check=False)
        if done.returncode or not page.exists():
            return "fails"
        text = page.read_text(encoding="utf-8", errors="replace")
    maps = len(re.findall(r"<h\d[^>]*>Heat Map: ", text))
    warned = len(re.findall(r"data incomplete|Module data incomplete", text, re.IGNORECASE))
    parts = [f"{maps} heat {'map' if maps == 1 else 'maps'}" if maps else "no heat map"]
    return ", ".join([*parts, f"{warned} warnings"] if warned else parts)


# ---- the page


def tables(every: Sequence[Said]) -> str:
    """Return the tables: log by log, and rule by rule."""
    lines = ["| log | PyDarshan | Drishti | `iosig job` |", "| --- | --- | --- | --- |"]
    lines += [f"| {_short(one.name)} | {one.pydarshan} | {_issues(one)} | {_found(one)} |" for one in every]
    lines += ["", "| rule | both | Drishti alone | `iosig job` alone | no answer |", "| --- | --- | --- | --- | --- |"]
    lines += list(_by_rule(every))
    return "\n".join(lines)


def _short(name: str) -> str:
    stem = name.removesuffix(".darshan")
    return f"`{stem if len(stem) <= _SHOWN_CHARACTERS else stem[: _SHOWN_CHARACTERS - 1] + '…'}`"


def _issues(one: Said) -> str:
    if one.drishti is None:
        return "fails"
    return " ".join(code for code in sorted(one.drishti) if code not in _NO_ISSUES) or "nothing"


def _found(one: Said) -> str:
    texts = [
        f"{'**' if 'critical' in how else ''}{rule}{'**' if 'critical' in how else ''}"
        for rule, how in one.rules.items()
    ]
    return ", ".join(texts) or "nothing"


def _by_rule(every: Sequence[Said]) -> Iterator[str]:
    """Yield a row for each rule: in how many logs each finds it, of those that both read."""
    names = dict.fromkeys(name for one in every for name in one.found["rule"])
    for rule in sorted(names, key=lambda name: (name not in _RULES, name)):
        counts: Counter[str] = Counter()
        for one in every:
            own = one.found.filter(rule=rule)
            ours = (own["outcome"] == "found").any()
            theirs = one.drishti is not None and bool(set(one.drishti) & set(_RULES.get(rule, ())))
            counts[{(1, 1): "both", (0, 1): "theirs", (1, 0): "ours", (0, 0): "none"}[int(ours), int(theirs)]] += 1
            counts["unknown"] += not ours and (own["outcome"] == "unknown").any()
        codes = f" ({', '.join(_RULES[rule])})" if rule in _RULES else ""
        cells = [counts[name] or "" for name in ("both", "theirs", "ours", "unknown")]
        yield f"| `{rule}`{codes} | {' | '.join(map(str, cells))} |"


def put(page: Path, made: str) -> None:
    """Put the tables in their place on the page."""
    text = page.read_text(encoding="utf-8")
    before, _, rest = text.partition(_BEGIN)
    _, _, after = rest.partition(_END)
    page.write_text(f"{before}{_BEGIN}\n{made}\n{_END}{after}", encoding="utf-8")


def main() -> None:
    """Ask all three about logs, and print the tables or put them into the page."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("logs", nargs="+", type=Path, help="Darshan logs")
    parser.add_argument("--peers", type=Path, required=True, help="a virtual environment that has drishti-io")
    parser.add_argument("--into", type=Path, help="the page; else the tables are printed")
    asked = parser.parse_args()
    every = [said_of(log, asked.peers) for log in asked.logs]
    made = tables(every)
    if asked.into:
        put(asked.into, made)
    else:
        print(made)


if __name__ == "__main__":
    main()
