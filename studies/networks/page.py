"""What the study of networks shows: its page, and tables."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from iosig.reports import panels, style
from iosig.reports.networks.legend import pixel_axes
from iosig.reports.networks.picture import draw_disc
from iosig.reports.networks.view import NetworkView
from iosig.transforms.networks.patterns import patterns
from iosig.transforms.networks.rings import layout

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing


from collections.abc import Iterator, Sequence
from functools import partial

import polars as pl

from iosig.studies.networks.running import MOST_REQUESTS, SKEW_RANGE_S, Results, example
from iosig.studies.pages import Block, Figure, Table, percent, tabled
from iosig.transforms.networks.network import Network
from iosig.transforms.networks.patterns import PATTERNS

#: pixels: a picture, and the title above it; how many stand side by side
_SIDE, _TITLE, _COLUMNS = 560, 34, 2
#: rank counts below which systems are told together
_SIZES = (32, 128, 1024, 1 << 30)
_IS_RIGHT = pl.col("planted") == pl.col("named")


def document(results: Results) -> dict[str, object]:
    """Return the results as plain values."""
    return {"answers": results.answers.to_dicts(), "clocks": results.clocks.to_dicts()}


def tables(results: Results) -> Iterator[tuple[str, Table]]:
    """Yield titles and tables."""
    yield "What planted patterns are called", confusion_table(results)
    yield "Named rightly, by ranks", size_table(results)
    yield "Errors of clocks, by their range", clock_table(results)


@tabled("planted", *PATTERNS, "none named", "right")
def confusion_table(results: Results) -> Iterator[Sequence[str]]:
    """Yield what systems of each planted pattern were called, and the share that was right."""
    for pattern in PATTERNS:
        named = results.answers.filter(pl.col("planted") == pattern)["named"]
        counts = [int((named == other).sum()) for other in PATTERNS]
        right = counts[PATTERNS.index(pattern)] / len(named)
        yield (pattern, *map(str, counts), str(len(named) - sum(counts)), percent(right))


@tabled("planted", *(f"below {high:,} ranks" for high in _SIZES[:-1]), f"{_SIZES[-2]:,} and more")
def size_table(results: Results) -> Iterator[Sequence[str]]:
    """Yield the share of systems of each planted pattern that was named rightly, by rank count."""
    for pattern in PATTERNS:
        of_pattern = results.answers.filter(pl.col("planted") == pattern)
        cells, low = [], 0
        for high in _SIZES:
            part = of_pattern.filter(pl.col("rank_count").is_between(low, high - 1)).select(_IS_RIGHT).to_series()
            cells.append(f"{part.sum()} of {len(part)}" if len(part) else "-")
            low = high
        yield (pattern, *cells)


def clock_table(results: Results) -> Table:
    """Return how exactly planted clocks were found."""
    return Table.of(
        results.clocks.with_columns(jitter_ms=pl.col("jitter_s") * 1e3),
        ("ranks", "{rank_count:,}"),
        ("files", "{file_count}"),
        ("jitter of opens", "{jitter_ms:g} ms"),
        ("largest error", "{error_ratio:%}"),
        ("median", "{median_error_ratio:%}"),
    )


def right_ratio(results: Results) -> float:
    """Return the share of planted systems that were named rightly."""
    return float(results.answers.select(_IS_RIGHT.mean()).item())


def blocks(results: Results) -> Iterator[Block]:
    """Yield what the page is made of."""
    params = results.params
    yield "# How well patterns are named and clocks are set"
    yield (
        "What `iosig network` says of a run, where the truth is planted. How to read the picture: "
        "[Networks](networks.md)."
    )
    examples: dict[str, Network] = {pattern: example(pattern) for pattern in PATTERNS}
    yield Figure("The four patterns, planted", "patterns", partial(draw_patterns, examples))
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
    yield confusion_table(results)
    yield size_table(results)
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
    yield clock_table(results)


def draw_patterns(networks: Mapping[str, Network], path: Path) -> None:
    """Draw networks side by side, each under its name, with dots at the nodes that cause its pattern."""
    rows = -(-len(networks) // _COLUMNS)
    size = (_COLUMNS * _SIDE / style.DOTS_PER_INCH, rows * (_SIDE + _TITLE) / style.DOTS_PER_INCH)
    panels.write(size, lambda figure: _compose(figure, networks), path)


def _compose(figure: Drawing, networks: Mapping[str, Network]) -> None:
    for number, (name, network) in enumerate(networks.items()):
        row, column = divmod(number, _COLUMNS)
        axes = pixel_axes(figure, column * _SIDE, row * (_SIDE + _TITLE) + _TITLE, _SIDE, _SIDE)
        axes.set_title(name, loc="center", fontsize=11)
        draw_disc(axes, NetworkView(name, network, layout(network), patterns(network), pl.DataFrame()), _SIDE)
