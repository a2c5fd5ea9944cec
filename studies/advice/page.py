"""Compute the template variables and figures of the page `docs/advice-study.md`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import polars as pl

from iosig.studies.advice.figures import draw_policies, draw_settings
from iosig.studies.advice.running import (
    ADVICE,
    GRID_S,
    ORACLE_STEP_S,
    POLICIES,
    SETTINGS,
    SHORT_DELAY_S,
    USUAL,
    Results,
    compare_policies,
)
from iosig.studies.pages import Draw, index_rows

#: baseline policies: current practice of schedulers, and the best choice by mean loads alone
RIVAL, STRONGER_RIVAL = "least loaded", "least mean"
#: policies shown by setting; the others behave the same in most settings
_SHOWN_POLICIES = (
    "least mean",
    "correlation",
    "contention",
    "contention, short delay",
    "contention, delayed",
    "oracle",
)


def values(results: Results) -> dict[str, object]:
    """Compute the variables of the template `page.md`."""
    rival, stronger, late = (
        compare_policies(results, name) for name in (RIVAL, STRONGER_RIVAL, "least loaded, delayed")
    )
    usual_rows = [index_rows(rows.filter(setting=USUAL), "policy") for rows in (rival, stronger, late)]
    stronger_wins = stronger.select("setting", "policy", rival_wins="wins", rival_losses="losses")
    combinations = pl.DataFrame({"policy": _SHOWN_POLICIES}).join(
        pl.DataFrame({"setting": list(SETTINGS)}), how="cross"
    )
    key = ["setting", "policy"]
    order = [pl.col("setting").cast(pl.Enum(list(SETTINGS))), pl.col("policy").cast(pl.Enum(_SHOWN_POLICIES))]
    return {
        **{"params": results.params, "POLICIES": POLICIES, "SETTINGS": SETTINGS, "SHORT_DELAY_S": SHORT_DELAY_S},
        **{"GRID_S": GRID_S, "ORACLE_STEP_S": ORACLE_STEP_S, "advice": ADVICE, "usual": SETTINGS[USUAL][1]},
        **dict(zip(("least_loaded", "least_mean", "as_late"), usual_rows, strict=True)),
        "fewer": partial(_format_wins, results.params.seed_count),
        "policies": rival.join(stronger_wins, on=key, maintain_order="left").filter(setting=USUAL),
        "settings": combinations.join(rival, on=key).join(stronger, on=key, suffix="_mean").sort(order),
    }


def figures(results: Results) -> dict[str, Draw]:
    """Map each figure name in `page.md` to its drawing function."""
    return {
        "policies": draw_policies(results.runs.filter(setting=USUAL)).write,
        "settings": draw_settings(compare_policies(results, RIVAL), list(SETTINGS), _SHOWN_POLICIES).write,
    }


def _format_wins(count: int, row: Mapping[str, float]) -> str:
    """Format a policy's comparison with the rival: mixes with fewer contended bytes, ties, losses, and total ratio."""
    return (
        f"{row['wins']} of {count} mixes (equal in {row['ties']}, more in {row['losses']}; {row['to_rival']:.2f} "
        "times as many in total)"
    )
