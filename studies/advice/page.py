"""What the study of advice shows: the values of its page (`page.md`), and its figures."""

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
    compared,
)
from iosig.studies.pages import Draw, by_name

#: whom a policy is compared with: what schedulers do now, and what they could do with mean loads alone
RIVAL, STRONGER_RIVAL = "least loaded", "least mean"
#: policies that a table of settings has, the others being the same in most of them
_SHOWN = ("least mean", "correlation", "contention", "contention, short delay", "contention, delayed", "oracle")


def values(results: Results) -> dict[str, object]:
    """Return what the page is made of."""
    rival, stronger, late = (compared(results, name) for name in (RIVAL, STRONGER_RIVAL, "least loaded, as late"))
    usual = [by_name(rows.filter(setting=USUAL), "policy") for rows in (rival, stronger, late)]
    beside = stronger.select("setting", "policy", rival_wins="wins", rival_losses="losses")
    shown = pl.DataFrame({"policy": _SHOWN}).join(pl.DataFrame({"setting": list(SETTINGS)}), how="cross")
    key = ["setting", "policy"]
    order = [pl.col("setting").cast(pl.Enum(list(SETTINGS))), pl.col("policy").cast(pl.Enum(_SHOWN))]
    return {
        **{"params": results.params, "POLICIES": POLICIES, "SETTINGS": SETTINGS, "SHORT_DELAY_S": SHORT_DELAY_S},
        **{"GRID_S": GRID_S, "ORACLE_STEP_S": ORACLE_STEP_S, "advice": ADVICE, "usual": SETTINGS[USUAL][1]},
        **dict(zip(("least_loaded", "least_mean", "as_late"), usual, strict=True)),
        "fewer": partial(_fewer, results.params.seed_count),
        "policies": rival.join(beside, on=key, maintain_order="left").filter(setting=USUAL),
        "settings": shown.join(rival, on=key).join(stronger, on=key, suffix="_mean").sort(order),
    }


def figures(results: Results) -> dict[str, Draw]:
    """Return what draws each figure of the page."""
    return {
        "policies": draw_policies(results.runs.filter(setting=USUAL)).write,
        "settings": draw_settings(compared(results, RIVAL), list(SETTINGS), _SHOWN).write,
    }


def _fewer(count: int, row: Mapping[str, float]) -> str:
    """Return in how many of the mixes a policy has fewer contended bytes, and how it is in the others."""
    return (
        f"{row['wins']} of {count} mixes (as many in {row['ties']}, more in {row['losses']}; {row['to_rival']:.2f} "
        "times as many in all)"
    )
