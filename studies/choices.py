"""Tables of `docs/methods.md`: which method is best on which kind of site, from the pages of the studies.

`python -m iosig.studies.papers` replaces the text between `<!-- measured: NAME -->` and `<!-- end -->`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from iosig.studies.measured import PageTable, read_tables
from iosig.studies.pages import Table, format_short

_LEVELS = ("calm", "busy", "stormy")
#: columns of the applications in tables of signatures
_APPLICATIONS = ("ior_a", "ior_b", "ior_c", "s3d", "flash")
#: rows of the signatures' tables: the default, and methods that are not compared with it
_CHOSEN = "chosen"
_NO_METHODS = ("elastic", "held out", "oracle robust", "oracle quantile")
#: least correlation of a signature that a release uses for its runs (`signatures.min_expected_correlation`)
_LEAST_CORRELATION = 0.6
_IOSI_SITES = "IOSI's evaluation"
#: least share of right periods of a signal that counts as solved
_SOLVED_RATIO = 0.95
_DEFAULT_PERIODS = "null_tested"
_NUMBER = re.compile(r"-?\d*\.?\d+")
_BLOCK = re.compile(r"(<!-- measured: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def fill_blocks(text: str, docs: Path) -> str:
    """Replace all measured blocks of a page by tables from the pages of the studies in `docs`."""
    blocks: Mapping[str, Callable[[Path], Table]] = {
        "signatures": compare_signatures,
        "alarms": compare_alarms,
        "periods": compare_periods,
        "classes": compare_classes,
    }
    return _BLOCK.sub(lambda match: f"{match[1]}\n{blocks[match[2]](docs).markdown}\n\n{match[3]}", text)


def _find_table(page: Path, heading: str, *header: str) -> PageTable:
    """Return the first table below a heading whose header begins with these columns."""
    for table in read_tables(page):
        if table.headings[-1] == heading and table.header[: len(header)] == header:
            return table
    raise LookupError(f"{page.name} has no table with the columns {', '.join(header)} below {heading!r}.")


def _last_number(cell: str) -> float:
    """Return the correlation in `cross-correlation/correlation`, or in `mean ± deviation, mean ± deviation`."""
    after = re.split(r"[/,]", cell)[-1]
    match = _NUMBER.search(after)
    if match is None:
        raise ValueError(f"There is no number in {cell!r}.")
    return float(match.group())


# ---- signatures


def compare_signatures(docs: Path) -> Table:
    """Compare the default with the best other method by kind of site: mean correlations of five applications."""
    page = docs / "signatures-study.md"
    kinds = {
        record["family"]: record for record in _find_table(page, "Many sites", "family", "runs drift by").records()
    }
    rows = list(_find_table(page, "Many sites", "family", "level", "method").records())
    rows += [{"family": _IOSI_SITES} | row for row in _find_table(page, "Accuracy", "level", "method").records()]
    header = (
        "sites", "runs drift by", "default", "best other method", "default minus the best other",
        f"programs below {format_short(_LEAST_CORRELATION)}",
    )  # fmt: skip
    return Table(header, list(_iterate_sites(rows, kinds)))


def _iterate_sites(rows: list[dict[str, str]], kinds: Mapping[str, Mapping[str, str]]) -> Iterator[tuple[str, ...]]:
    for family in dict.fromkeys(row["family"] for row in rows):
        means: dict[tuple[str, str], float] = {}
        weak: list[str] = []
        for row in (row for row in rows if row["family"] == family):
            correlations = {name: _last_number(row[name]) for name in _APPLICATIONS}
            means[row["level"], row["method"]] = sum(correlations.values()) / len(correlations)
            if row["method"] == _CHOSEN:
                names = [name for name, number in correlations.items() if number < _LEAST_CORRELATION]
                weak += [f"{row['level']}: {', '.join(names)}"] if names else []
        others = [_find_best(means, level) for level in _LEVELS]
        defaults = [means[level, _CHOSEN] for level in _LEVELS]
        gains = [default - number for default, (_, number) in zip(defaults, others, strict=True)]
        yield (
            family,
            kinds[family]["runs drift by"].rpartition(", ")[2] if family in kinds else "-",
            ", ".join(map(format_short, defaults)),
            ", ".join(f"{name} {format_short(number)}" for name, number in others),
            ", ".join(f"{'+' if gain >= 0 else '-'}{format_short(abs(gain))}" for gain in gains),
            "; ".join(weak) or "none",
        )


def _find_best(means: Mapping[tuple[str, str], float], level: str) -> tuple[str, float]:
    """Return the method other than the default with the highest mean at a level, and its mean."""
    others = {
        name: mean for (row_level, name), mean in means.items()
        if row_level == level and name not in (_CHOSEN, *_NO_METHODS)
    }  # fmt: skip
    best = max(others, key=lambda name: others[name])
    return best, others[best]


# ---- periods


def compare_alarms(docs: Path) -> Table:
    """List the highest false-alarm rates of each method, and its errors on FTIO's traces."""
    table = _find_table(docs / "periods-study.md", "In short", "method")
    rows = [tuple(cell.partition(" / ")[0] for cell in row) for row in table.rows]
    return Table([name.removesuffix(" / found") for name in table.header], rows)


def compare_periods(docs: Path) -> Table:
    """List the held-out signals that the default does not solve, with the best other method: shares of right ones."""
    heading = "Periods found [%], and of these within 3 % of the true one"
    table = _find_table(docs / "periods-study.md", heading, "signals")
    rows = []
    for record in table.records():
        shares = {name: _right_ratio(cell) for name, cell in record.items() if name != "signals"}
        default = shares.pop(_DEFAULT_PERIODS)
        best = max(shares, key=lambda name: shares[name])
        if default < _SOLVED_RATIO:
            rows.append(
                (record["signals"], f"{default:.0%}", f"{best} {shares[best]:.0%}", f"{default - shares[best]:+.0%}")
            )
    spaced = [tuple(cell.replace("%", " %") for cell in row) for row in rows]
    return Table(("signals", "default", "best other method", "difference"), spaced)


def _right_ratio(cell: str) -> float:
    """Return the share of signals with the right period: of `found %, of these right %`."""
    found, _, right = cell.partition(", ")
    return 0.0 if right == "-" else float(found.rstrip(" %")) * float(right.rstrip(" %")) / 1e4


# ---- classes


def compare_classes(docs: Path) -> Table:
    """List the shares of right classes of runs by method, for runs of applications with a signature."""
    table = _find_table(docs / "population-study.md", "Classes", "level", "direction", "method")
    shares: dict[tuple[str, str], dict[str, str]] = {}
    for record in table.records():
        shares.setdefault((record["level"], record["direction"]), {})[record["method"]] = record["correct, of these"]
    methods = list(next(iter(shares.values())))
    rows = [(*key, *(row[name] for name in methods)) for key, row in shares.items()]
    return Table(("level", "direction", *methods), rows)
