"""Compute the template variables of the results on signals that no method was tuned on."""

from __future__ import annotations

import polars as pl

from iosig.studies.pages import format_percent
from iosig.studies.periods import oracles
from iosig.studies.periods.unseen import BOUNDS

#: groups of signals that are shown together
_GROUPS = {
    "rhythms": ("claim", "power", "plain"),
    "unsure": ("errors",),
    "nulls": ("bursts", "white", "red", "states"),
    "traps": ("holes", "ticks"),
}
#: results of the default detector before it was tuned on these signals: fraction in which it found a period, and the
#: fraction of these within 3 %, as far as recorded (200 draws each, seed 0).
_FORMER: dict[str, tuple[float | None, float | None]] = {
    "clean": (None, 1.0),
    "noise of 5 bursts": (None, 1.0),
    "duty 40 %": (None, 1.0),
    "duty 60 %": (None, 1.0),
    "8 samples a cycle": (None, 0.96),
    "drift of 10 %": (None, 0.89),
    "6 cycles in little noise": (0.27, None),
    "4 cycles in noise": (0.01, None),
    "6 cycles in noise": (0.02, None),
    "8 cycles in noise": (0.19, None),
    "uneven sizes": (0.94, None),
    "45 % missing": (0.76, None),
    "a stray burst a cycle": (None, 0.87),
    "jitter of 15 %": (None, 0.84),
    "jitter of 15 % in noise": (0.18, None),
}
#: number of generators shown, those with the most false alarms
_MAX_GENERATORS = 8


def unseen_values(rows: pl.DataFrame) -> dict[str, object]:
    """Compute the template variables; rows as returned by `unseen.add_rates`."""
    rows_by_table = {name: rows.filter(pl.col("group").is_in(groups)) for name, groups in _GROUPS.items()}
    default = rows_by_table["rhythms"].filter(pl.col("method") == pl.col("method").first())
    return {
        **rows_by_table,
        "unsure": rows_by_table["unsure"].with_columns(
            kind=pl.col("name").str.replace(", [^,]*$", ""), cycles=pl.col("name").str.extract(", ([^,]*)$")
        ),
        "bounds": _select_bounds(rows, default),
        "BOUND_NAMES": [*oracles.NULLS, oracles.BURSTS],
        "former": _join_former(default),
        "kinds": _summarize_kinds(rows_by_table["nulls"]),
        "worst": rows_by_table["nulls"].sort("claim_ratio", descending=True, maintain_order=True).head(_MAX_GENERATORS),
        "format_errors": _format_errors,
    }


def _select_bounds(rows: pl.DataFrame, default: pl.DataFrame) -> pl.DataFrame:
    """Return the results of the oracles, after those of the default method on the same signals."""
    bounds = rows.filter(group=BOUNDS)
    return pl.concat([default.filter(pl.col("name").is_in(bounds["name"].implode())), bounds])


def _format_errors(row: dict[str, float]) -> str:
    """Format the fractions of right periods within one and two reported errors of the truth."""
    if not row["right_count"]:
        return "-"
    return f"{format_percent(row['one_error_ratio'])}, {format_percent(row['two_errors_ratio'])}"


def _join_former(default: pl.DataFrame) -> pl.DataFrame:
    """Return the default method's results after it was tuned, with those before."""
    former_rows = [(name, *ratios) for name, ratios in _FORMER.items()]
    columns = {"name": pl.String, "former_claim_ratio": pl.Float64, "former_good_ratio": pl.Float64}
    return pl.DataFrame(former_rows, columns, orient="row").join(default, on="name", maintain_order="left")


def _summarize_kinds(nulls: pl.DataFrame) -> pl.DataFrame:
    return nulls.group_by("group", "sample_count", maintain_order=True).agg(
        pl.len().alias("generator_count"),
        pl.col("claim_ratio").mean().alias("mean"),
        pl.col("claim_ratio", "least_ratio").max(),
    )
