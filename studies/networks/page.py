"""Compute the template variables and figures of the page `docs/networks-study.md`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import polars as pl

from iosig.reports import style
from iosig.reports.networks.legend import pixel_axes
from iosig.reports.networks.picture import draw_disc
from iosig.reports.networks.view import NetworkView
from iosig.reports.panels import Size, picture
from iosig.studies.networks.running import MAX_REQUESTS, SKEW_RANGE_S, Results, plant_example
from iosig.studies.pages import Draw
from iosig.transforms.networks.network import Network
from iosig.transforms.networks.patterns import PATTERNS, classify_patterns
from iosig.transforms.networks.rings import compute_layout

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: side and title height of a panel [px], and number of panels per row
_SIDE, _TITLE, _COLUMNS = 560, 34, 2
#: first rank counts of the classes after the first one, and the names of all classes
_SIZES = (32, 128, 1024)
_SIZE_NAMES = (*(f"below {size:,} ranks" for size in _SIZES), f"{_SIZES[-1]:,} and more")
_IS_RIGHT = pl.col("planted") == pl.col("matched")


def values(results: Results) -> dict[str, object]:
    """Compute the variables of the template `page.md`."""
    outliers = results.answers.filter(planted="outlier", matched="outlier")
    return {
        **{"params": results.params, "MAX_REQUESTS": MAX_REQUESTS, "SKEW_RANGE_S": SKEW_RANGE_S},
        **{"PATTERNS": PATTERNS, "SIZE_NAMES": _SIZE_NAMES},
        "right_ratio": results.answers.select(_IS_RIGHT.mean()).item(),
        "outlier_count": int(outliers["told_count"].sum()),
        "right_outlier_count": int(outliers["right_count"].sum()),
        "confusion": count_matches(results.answers),
        "sizes": count_by_size(results.answers),
        "clocks": results.clocks.with_columns(jitter_ms=pl.col("jitter_s") * 1e3),
    }


def figures(results: Results) -> dict[str, Draw]:
    """Map each figure name in `page.md` to its drawing function."""
    return {
        "patterns": lambda path: draw_patterns({pattern: plant_example(pattern) for pattern in PATTERNS}).write(path)
    }


def count_matches(answers: pl.DataFrame) -> pl.DataFrame:
    """For each planted pattern, count the patterns detected in its systems, and the fraction of correct ones."""
    is_named = pl.col("matched").is_in(PATTERNS)
    return answers.group_by("planted", maintain_order=True).agg(
        *((pl.col("matched") == pattern).sum().alias(pattern) for pattern in PATTERNS),
        unnamed_count=(~is_named).sum(),
        right_ratio=_IS_RIGHT.mean(),
    )


def count_by_size(answers: pl.DataFrame) -> pl.DataFrame:
    """Count the systems and the correct detections by planted pattern and class of rank counts."""
    place = pl.sum_horizontal(pl.col("rank_count") >= size for size in _SIZES)
    size = place.replace_strict(range(len(_SIZE_NAMES)), _SIZE_NAMES, return_dtype=pl.String)
    counts = answers.group_by("planted", size.alias("size"), maintain_order=True)
    return counts.agg(right_count=_IS_RIGHT.sum(), count=pl.len())


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
