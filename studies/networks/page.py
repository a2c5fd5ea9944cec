"""Compute the template variables and figures of the page `docs/networks-study.md`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from iosig.reports import style
from iosig.reports.networks.legend import pixel_axes
from iosig.reports.networks.picture import draw_disc
from iosig.reports.networks.view import NetworkView
from iosig.transforms.networks.patterns import PATTERNS, classify_patterns
from iosig.transforms.networks.rings import compute_layout

if TYPE_CHECKING:
    from matplotlib.figure import Figure


import polars as pl

from iosig.reports.panels import Size, picture
from iosig.studies.networks.running import MAX_REQUESTS, SKEW_RANGE_S, Results, plant_example
from iosig.studies.pages import Draw, collect_rows, format_percent
from iosig.transforms.networks.network import Network

#: side and title height of a panel [px], and number of panels per row
_SIDE, _TITLE, _COLUMNS = 560, 34, 2
#: upper limits of the classes of rank counts
_SIZES = (32, 128, 1024, 1 << 30)
_IS_RIGHT = pl.col("planted") == pl.col("matched")


def values(results: Results) -> dict[str, object]:
    """Compute the variables of the template `page.md`."""
    outliers = results.answers.filter(planted="outlier", matched="outlier")
    return {
        **{"params": results.params, "MAX_REQUESTS": MAX_REQUESTS, "SKEW_RANGE_S": SKEW_RANGE_S},
        "right_ratio": compute_right_ratio(results),
        "outlier_count": int(outliers["told_count"].sum()),
        "right_outlier_count": int(outliers["right_count"].sum()),
        "confusion": confusion_table(results),
        "sizes": size_table(results),
        "clocks": results.clocks.with_columns(jitter_ms=pl.col("jitter_s") * 1e3),
    }


def figures(results: Results) -> dict[str, Draw]:
    """Map each figure name in `page.md` to its drawing function."""
    return {
        "patterns": lambda path: draw_patterns({pattern: plant_example(pattern) for pattern in PATTERNS}).write(path)
    }


@collect_rows("planted", *PATTERNS, "none named", "right")
def confusion_table(results: Results) -> Iterator[Sequence[str]]:
    """Yield the detected patterns of the systems with each planted pattern, and the fraction of correct ones."""
    for pattern in PATTERNS:
        matched = results.answers.filter(pl.col("planted") == pattern)["matched"]
        counts = [int((matched == other).sum()) for other in PATTERNS]
        right = counts[PATTERNS.index(pattern)] / len(matched)
        yield (pattern, *map(str, counts), str(len(matched) - sum(counts)), format_percent(right))


@collect_rows("planted", *(f"below {high:,} ranks" for high in _SIZES[:-1]), f"{_SIZES[-2]:,} and more")
def size_table(results: Results) -> Iterator[Sequence[str]]:
    """Yield the number of correct detections by planted pattern and rank count."""
    for pattern in PATTERNS:
        of_pattern = results.answers.filter(pl.col("planted") == pattern)
        cells, low = [], 0
        for high in _SIZES:
            part = of_pattern.filter(pl.col("rank_count").is_between(low, high - 1)).select(_IS_RIGHT).to_series()
            cells.append(f"{part.sum()} of {len(part)}" if len(part) else "-")
            low = high
        yield (pattern, *cells)


def compute_right_ratio(results: Results) -> float:
    """Return the fraction of systems with a correctly detected pattern."""
    return float(results.answers.select(_IS_RIGHT.mean()).item())


def _size(networks: Mapping[str, Network]) -> Size:
    rows = -(-len(networks) // _COLUMNS)
    return _COLUMNS * _SIDE / style.DOTS_PER_INCH, rows * (_SIDE + _TITLE) / style.DOTS_PER_INCH


@picture(_size)
def draw_patterns(figure: Figure, networks: Mapping[str, Network]) -> None:
    """Draw networks side by side, titled by name, with dots at the nodes that cause the pattern."""
    for number, (name, network) in enumerate(networks.items()):
        row, column = divmod(number, _COLUMNS)
        axes = pixel_axes(figure, column * _SIDE, row * (_SIDE + _TITLE) + _TITLE, _SIDE, _SIDE)
        axes.set_title(name, loc="center", fontsize=11)
        draw_disc(
            axes, NetworkView(name, network, compute_layout(network), classify_patterns(network), pl.DataFrame()), _SIDE
        )
