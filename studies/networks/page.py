"""The study as a page: `networks-study.md` with its tables, and the figure beside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import polars as pl

from studies.networks.running import MOST_REQUESTS, SKEW_RANGE_S, Results, example
from studies.periods.page import FIGURES, markdown_table, percent, write_page
from transforms.networks.patterns import PATTERNS

PAGE = "networks-study.md"
_FIGURE = "networks-study-patterns.png"
#: rank counts below which systems are told together
_SIZES = (32, 128, 1024, 1 << 30)
CONFUSION = ("planted", *PATTERNS, "none named", "right")
BY_SIZE = ("planted", *(f"below {high:,} ranks" for high in _SIZES[:-1]), f"{_SIZES[-2]:,} and more")
CLOCKS = ("ranks", "files", "jitter of opens", "largest error", "median")


def write(results: Results, folder: Path) -> Path:
    """Write the page and its figure into a folder; return the page."""
    return write_page(folder / PAGE, _draw, lambda: text(results))


def _draw(folder: Path) -> None:
    from studies.networks.figures import draw_patterns

    draw_patterns({pattern: example(pattern) for pattern in PATTERNS}, folder / _FIGURE)


def confusion_rows(results: Results) -> Iterator[Sequence[str]]:
    """Yield what systems of each planted pattern were called, and the share that was right."""
    for pattern in PATTERNS:
        named = results.answers.filter(pl.col("planted") == pattern)["named"]
        counts = [int((named == other).sum()) for other in PATTERNS]
        right = counts[PATTERNS.index(pattern)] / len(named)
        yield (pattern, *map(str, counts), str(len(named) - sum(counts)), percent(right))


def size_rows(results: Results) -> Iterator[Sequence[str]]:
    """Yield the share of systems of each planted pattern that was named rightly, by rank count."""
    is_right = pl.col("planted") == pl.col("named")
    for pattern in PATTERNS:
        of_pattern = results.answers.filter(pl.col("planted") == pattern)
        cells, low = [], 0
        for high in _SIZES:
            part = of_pattern.filter(pl.col("rank_count").is_between(low, high - 1)).select(is_right).to_series()
            cells.append(f"{part.sum()} of {len(part)}" if len(part) else "-")
            low = high
        yield (pattern, *cells)


def clock_rows(results: Results) -> Iterator[Sequence[str]]:
    """Yield how exactly planted clocks were found."""
    for row in results.clocks.iter_rows(named=True):
        yield (
            f"{row['rank_count']:,}",
            str(row["file_count"]),
            f"{row['jitter_s'] * 1e3:g} ms",
            percent(row["error_ratio"]),
            percent(row["median_error_ratio"]),
        )


def right_ratio(results: Results) -> float:
    """Return the share of planted systems that were named rightly."""
    found = results.answers.select((pl.col("planted") == pl.col("named")).mean()).item()
    return float(found)


def text(results: Results) -> str:
    """Return the page."""
    return "\n\n".join(_blocks(results)) + "\n"


def _blocks(results: Results) -> Iterator[str]:
    params = results.params
    command = f"iosig study networks --seeds {params.seed_count} --seed {params.seed}"
    yield f"<!-- Made by `{command} --into DIR`: run it again instead of editing this page. -->"
    yield "# How well patterns are named and clocks are set"
    yield (
        "What `iosig network` says of a run, where the truth is planted. How to read the picture: "
        "[Networks](networks.md)."
    )
    yield f"![The four patterns, planted]({FIGURES}/{_FIGURE})"
    yield "## Patterns"
    outliers = results.answers.filter(pl.col("planted") == "outlier", pl.col("named") == "outlier")
    told, right = (int(outliers[name].sum()) for name in ("told_count", "right_count"))
    yield (
        f"{params.seed_count} systems of each pattern that Sigovan et al. show (IPDPS'13, Figure 6): 16 to 8,192 "
        f"ranks, at most {MOST_REQUESTS:,} requests, 3 to 1,000 a rank; the widths of values, numbers of outliers, "
        "bands and strengths of the effect are drawn, too. Named by the times from ranks to I/O nodes, over the whole "
        f"run. **{percent(right_ratio(results))}** are named rightly; of {told:,} nodes that were told as outliers, "
        f"{right:,} are planted ones."
    )
    yield markdown_table(CONFUSION, confusion_rows(results))
    yield markdown_table(BY_SIZE, size_rows(results))
    yield (
        "What is missed most are outliers of few requests or hidden between two bands of values, and systems of few "
        "ranks. None named is meant so: a wrong name is worse. The rules: `transforms/networks/patterns.py`."
    )
    yield "## Clocks"
    yield (
        f"Clocks up to {SKEW_RANGE_S * 1e3:g} ms apart, evenly drawn, found by collective opens that ranks leave "
        f"within the jitter: {params.seed_count} draws of each. Errors are of the rank that is furthest off, by the "
        "range of the clocks: the worst of all draws, and the median."
    )
    yield markdown_table(CLOCKS, clock_rows(results))
