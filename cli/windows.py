"""Parse times on the command line: an instant, or a window of two numbers of seconds or two instants."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import NamedTuple

import click


class WindowText(NamedTuple):
    """A time window from start_s to end_s: Unix seconds for instants, else seconds on the input's own clock."""

    start_s: float
    end_s: float
    is_instants: bool


def read_window(ctx: click.Context, param: click.Parameter, value: str | None) -> WindowText | None:
    """Parse a window given as A:B in seconds, or A/B as instants; either end may be open."""
    if value is None:
        return None
    is_instants = "/" in value
    parts = value.split("/" if is_instants else ":")
    if len(parts) != 2:
        raise click.BadParameter("give two numbers of seconds as A:B, or two instants as A/B", ctx, param)
    try:
        start_s, end_s = (
            open_end if not part.strip() else (_instant_s if is_instants else _seconds)(part.strip())
            for part, open_end in zip(parts, (-math.inf, math.inf), strict=True)
        )
    except ValueError as error:
        kind = "an instant such as 2018-02-09T13:00Z" if is_instants else "a number of seconds"
        raise click.BadParameter(f"{value!r} contains a part that is not {kind}", ctx, param) from error
    if not start_s < end_s:
        raise click.BadParameter(f"{value!r} ends before it begins", ctx, param)
    return WindowText(start_s, end_s, is_instants)


def read_instant(ctx: click.Context, param: click.Parameter, value: str | None) -> datetime | None:
    """Parse an instant; UTC if it names no zone."""
    if value is None:
        return None
    try:
        return datetime.fromtimestamp(_instant_s(value.strip()), UTC)
    except (ValueError, OverflowError) as error:
        raise click.BadParameter(f"{value!r} is not an instant such as 2018-02-09T13:00Z", ctx, param) from error


def _seconds(text: str) -> float:
    seconds = float(text)
    if math.isnan(seconds):
        raise ValueError("not a number")
    return seconds


def _instant_s(text: str) -> float:
    instant = datetime.fromisoformat(text)
    return (instant if instant.tzinfo else instant.replace(tzinfo=UTC)).timestamp()
