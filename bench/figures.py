"""The lines of the table of benchmarks."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the table: what was measured, what it must keep to, whether it does."""

    name: str
    ours: str
    peer: str
    ratio: str
    limit: str
    holds: bool
