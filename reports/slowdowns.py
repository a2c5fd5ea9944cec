"""Describe slowed bursts in words: their number, and the application with the most interfering bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from iosig.reports.texts import format_count

NOBODY_KNOWN = "unattributed"


def format_slowed_bursts(outcomes: Sequence[str]) -> str:
    """Summarize in a sentence how many of a run's bursts were slowed; outcomes: from the table `slowdowns`."""
    outcomes_found = [outcome for outcome in outcomes if outcome != "not_found"]
    if not outcomes_found:
        return "No bursts of this run were detected in the traffic, so slowdowns are unknown."
    slowed = outcomes_found.count("slowed")
    were_hurt = "was" if slowed == 1 or len(outcomes_found) == 1 else "were"
    bursts = format_count(len(outcomes_found), "burst")
    return f"{slowed:,} of {bursts} detected in the traffic {were_hurt} slowed."


def top_interferer(row: Mapping[str, Any]) -> tuple[str, float]:
    """Return the largest source of interfering bytes during a burst, and its bytes; row: from `slowdowns`.

    The source is the top interfering application, or unattributed traffic if that is larger.
    """
    top_bytes, unattributed_bytes = row["top_interferer_bytes"] or 0.0, row["unattributed_bytes"] or 0.0
    if row["top_interferer_application_id"] is not None and top_bytes >= unattributed_bytes:
        return str(row["top_interferer_application_id"]), top_bytes
    return NOBODY_KNOWN, unattributed_bytes
