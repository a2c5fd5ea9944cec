"""Job keys: what servers call a job, and which id of the scheduler's stands in it."""

from __future__ import annotations

import re
from collections.abc import Sequence

import polars as pl

#: what stands for a letter of Lustre's `jobid_name` (Lustre manual, section 12.2.2): the id is the first group
_CODES = {
    "e": r"[^:]+?",
    "g": r"\d+",
    "h": r"[^:]*?",
    "H": r"[^:]*?",
    "j": r"(\d+(?:_\d+)?)",
    "p": r"\d+",
    "u": r"\d+",
    "%": "%",
}
#: names for what is usual: PBS's ids have the server's name behind them, array jobs a number in brackets
PRESETS = {
    "slurm": "%j",
    "pbs": r"^(\d+(?:\[\d*\])?)\.[A-Za-z][\w.-]*$",
    "procname_uid": "%e.%u",
}
#: what a key is: none at all, one with an id of the scheduler's, a program's name and user, or something else
BLANK, JOB, PROCESS, UNKNOWN = "blank", "job", "process", "unknown"


def expression(told: str) -> str:
    """Return the regular expression that a preset, a `jobid_name` or a regular expression stands for.

    Raises re.error where it is none, or has more than one id.
    """
    told = PRESETS.get(told, told)
    found = _of_codes(told) if re.search(r"%[eghHjpu]", told) else told
    groups = re.compile(found).groups
    if groups > 1 or (groups == 0 and found == told):
        raise re.error("it must have one group, which is the scheduler's id")
    return found


def _of_codes(name: str) -> str:
    pieces = re.split(r"%([eghHjpu%])", name)
    return "^" + "".join(_CODES[one] if place % 2 else re.escape(one) for place, one in enumerate(pieces)) + "$"


def read_keys(keys: pl.Series, told: Sequence[str]) -> pl.DataFrame:
    """Return what stands in job keys.

    keys (n): text. told: presets, `jobid_name`s or regular expressions, of which the first that fits counts.

    Returns job_key, key_kind, and scheduler_id, NULL where the key is of another kind; a row each, in the same order.
    """
    expressions = [expression(one) for one in told]
    key = pl.col("job_key")
    kinds = [pl.when(key.str.strip_chars() == "").then(pl.lit(BLANK))]
    ids = [pl.when(key.str.strip_chars() == "").then(pl.lit(""))]
    for one in expressions:
        is_job = bool(re.compile(one).groups)
        kinds.append(pl.when(key.str.contains(one)).then(pl.lit(JOB if is_job else PROCESS)))
        # what fits and has no id is of no other form, either
        ids.append(pl.when(key.str.contains(one)).then(key.str.extract(one, 1) if is_job else pl.lit("")))
    found = keys.rename("job_key").to_frame()
    return found.with_columns(
        key_kind=pl.coalesce(*kinds, pl.lit(UNKNOWN)), scheduler_id=pl.coalesce(ids).replace({"": None})
    )
