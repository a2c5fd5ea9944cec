"""Extract the scheduler's job id from the job keys of Lustre servers."""

from __future__ import annotations

import re
from collections.abc import Sequence

import polars as pl

#: regular expressions of the codes of Lustre's `jobid_name` (Lustre manual, section 12.2.2); group 1 is the job id
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
#: patterns with names; PBS ids end with the server's name, and array jobs have an index in brackets
PRESETS = {
    "slurm": "%j",
    "pbs": r"^(\d+(?:\[\d*\])?)\.[A-Za-z][\w.-]*$",
    "procname_uid": "%e.%u",
}
#: kinds of keys: empty, with a job id, program name and user, or other
BLANK, JOB, PROCESS, UNKNOWN = "blank", "job", "process", "unknown"


def to_regex(pattern: str) -> str:
    """Convert a job key pattern to a regular expression.

    Parameters
    ----------
    pattern : str
        A name of `PRESETS`, a Lustre `jobid_name` with % codes, or a regular expression.

    Returns
    -------
    str
        A regular expression with the job id as its only group, if any.

    Raises
    ------
    re.error
        If the pattern is invalid or has more than one id; a regular expression needs exactly one group.

    """
    pattern = PRESETS.get(pattern, pattern)
    regex = _expand_codes(pattern) if re.search(r"%[eghHjpu]", pattern) else pattern
    groups = re.compile(regex).groups
    if groups > 1 or (groups == 0 and regex == pattern):
        raise re.error("it must have exactly one group, the scheduler's job id")
    return regex


def _expand_codes(name: str) -> str:
    parts = re.split(r"%([eghHjpu%])", name)
    return "^" + "".join(_CODES[part] if index % 2 else re.escape(part) for index, part in enumerate(parts)) + "$"


def parse_keys(keys: pl.Series, patterns: Sequence[str]) -> pl.DataFrame:
    """Classify job keys and extract job ids.

    Parameters
    ----------
    keys : pl.Series
        Job keys as text.
    patterns : sequence of str
        Patterns as for `to_regex`; the first match counts.

    Returns
    -------
    pl.DataFrame
        Columns job_key, key_kind, and scheduler_id (NULL unless key_kind is `job`); one row per key, in order.

    """
    regexes = [to_regex(pattern) for pattern in patterns]
    key = pl.col("job_key")
    kinds = [pl.when(key.str.strip_chars() == "").then(pl.lit(BLANK))]
    ids = [pl.when(key.str.strip_chars() == "").then(pl.lit(""))]
    for regex in regexes:
        is_job = bool(re.compile(regex).groups)
        kinds.append(pl.when(key.str.contains(regex)).then(pl.lit(JOB if is_job else PROCESS)))
        # a match without an id excludes the later patterns
        ids.append(pl.when(key.str.contains(regex)).then(key.str.extract(regex, 1) if is_job else pl.lit("")))
    return (
        keys.rename("job_key")
        .to_frame()
        .with_columns(key_kind=pl.coalesce(*kinds, pl.lit(UNKNOWN)), scheduler_id=pl.coalesce(ids).replace({"": None}))
    )
