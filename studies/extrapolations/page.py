"""Compute the template variables and figures of the page `docs/extrapolations-study.md`."""

from __future__ import annotations

from functools import partial

import polars as pl

from iosig.studies.extrapolations.figures import draw_map, draw_sizes, draw_times
from iosig.studies.extrapolations.running import FAR_RANK_COUNTS, Results
from iosig.studies.extrapolations.tables import (
    compare_times,
    list_models,
    list_outcomes,
    list_sizes,
    select_refusals,
    summarize_lossless,
    summarize_outcomes,
    time_summary,
)
from iosig.studies.pages import Draw


def document(results: Results) -> dict[str, object]:
    """Return the results as the JSON document of `iosig study --json`."""
    return {name: getattr(results, name) for name in ("traces", "checks", "models", "sizes", "curves")}


def values(results: Results) -> dict[str, object]:
    """Compute the variables of the template `page.md`."""
    offsets, timed = _select_offsets(results), compare_times(results)
    return {
        "programs": results.traces["program"].n_unique(),
        "rank_counts": results.traces["process_count"].unique().sort().to_list(),
        "studied": partial(_list_programs, set(results.traces["program"])),
        "FAR": FAR_RANK_COUNTS,
        "outcomes": summarize_outcomes(results),
        "outer_outcomes": list_outcomes(results, has_nested=False),
        "nested_outcomes": list_outcomes(results, has_nested=True),
        "refusals": select_refusals(results),
        "offsets": None if offsets.is_empty() else offsets.row(0, named=True),
        "models": list_models(results),
        "has_sizes": not results.sizes.is_empty(),
        "lossless": summarize_lossless(results),
        "sizes": list_sizes(results),
        "times": time_summary(timed),
        "timed": timed.with_columns(pl.col("model_error", "mean_error") * 100),
    }


def figures(results: Results) -> dict[str, Draw]:
    """Map each figure name in `page.md` to its drawing function."""
    held_out = results.checks.filter(~pl.col("has_nested") & pl.col("is_unseen"))
    times = "Times by ranks: the largest rank count is not used for the models"
    drawings: dict[str, Draw] = {
        "sizes": draw_sizes(results.traces, results.sizes, "Bytes of a trace by ranks").write,
        "times": draw_times(held_out, results.curves, times).write,
    }
    offsets = _select_offsets(results)
    if not offsets.is_empty():
        program, formula = offsets.select("program", "formula").row(0)
        drawings["map"] = draw_map(offsets, f"Offsets of {program}: {formula}").write
    return drawings


def _select_offsets(results: Results) -> pl.DataFrame:
    """Return the offsets of the first program with a file that its ranks share."""
    return results.maps.filter(pl.col("program") == pl.col("program").first())


def _list_programs(program_names: set[str], *names: str) -> str:
    """Format the given programs that were studied, in parentheses."""
    studied = [f"`{name}`" for name in names if name in program_names]
    return f" ({', '.join(studied)})" if studied else ""
