"""File systems as data: a heat map of minutes and days for each, and a file a day with who was on it."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

import numpy as np
import polars as pl

from reports.site.packing import Content, columns, file_hash, packed
from transforms.arrays import Reals

_MINUTES, _STEPS = 1440, 288
#: codes of rates: nothing is known, nothing was moved, then eight to an octave from this rate on
GAP, NOTHING, FIRST = 0, 1, 2
LEAST_BYTES_PER_S = 1e5
CODES_PER_OCTAVE = 8
_EPOCH = date(1970, 1, 1)


@dataclass(frozen=True, slots=True)
class FilesystemFrames:
    """What there is to tell of file systems; day: days since 1970.

    minutes: filesystem, day, minute (from 0), read_bytes_per_s, written_bytes_per_s; no row where nothing was polled.
    parts: what applications (NULL: all others) explain in each step of five minutes. runs: who was there on each day.
    """

    minutes: pl.DataFrame
    parts: pl.DataFrame
    runs: pl.DataFrame


def contents(frames: FilesystemFrames) -> Iterator[Content]:
    """Yield the list of file systems, the heat map of each, and each one's days."""
    names = frames.minutes["filesystem"].unique().sort().to_list()
    yield packed("filesystems", [[name, file_hash(name)] for name in names])
    for name in names:
        yield from _of_one(frames, name)


def _of_one(frames: FilesystemFrames, name: str) -> Iterator[Content]:
    own = frames.minutes.filter(filesystem=name)
    first, last = int(own["day"].min()), int(own["day"].max())  # type: ignore[arg-type]
    days = range(first, last + 1)
    rates = {way: _grid(own, first, len(days), f"{way}_bytes_per_s") for way in ("read", "written")}
    place = f"filesystem/{file_hash(name)}"
    yield packed(
        place,
        {
            "filesystem": name,
            "days": [_text(day) for day in days],
            "least_bytes_per_s": LEAST_BYTES_PER_S,
            "codes_per_octave": CODES_PER_OCTAVE,
            "read": _codes(rates["read"]),
            "written": _codes(rates["written"]),
        },
    )
    runs = frames.runs.filter(filesystem=name).drop("filesystem").partition_by("day", as_dict=True, include_key=False)
    parts = frames.parts.filter(filesystem=name).partition_by("day", as_dict=True)
    for number, day in enumerate(days):
        if not any(np.isfinite(grid[number]).any() for grid in rates.values()):
            continue
        there = runs.get((day,), frames.runs.drop("filesystem", "day").clear())
        yield packed(
            f"{place}-{_text(day)}",
            {
                "filesystem": name,
                "day": _text(day),
                "read": _codes(rates["read"][number]),
                "written": _codes(rates["written"][number]),
                "parts": _parts(parts.get((day,))),
                "runs": columns(there),
            },
        )


def _text(day: int) -> str:
    return (_EPOCH + timedelta(days=day)).isoformat()


def _grid(own: pl.DataFrame, first: int, day_count: int, column: str) -> Reals:
    """Return rates by day and minute, NaN where nothing is known."""
    grid = np.full((day_count, _MINUTES), np.nan)
    grid[own["day"].to_numpy() - first, own["minute"].to_numpy()] = own[column].cast(pl.Float64).to_numpy()
    return grid


def coded(rates: Reals) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Return rates [B/s] as codes: `GAP` for NaN, `NOTHING` for none, else by octaves, to 5 %."""
    with np.errstate(divide="ignore", invalid="ignore"):
        octaves = np.log2(rates / LEAST_BYTES_PER_S)
    codes = np.clip(FIRST + np.rint(CODES_PER_OCTAVE * octaves), FIRST, 255)
    return np.where(np.isnan(rates), GAP, np.where(rates > 0, codes, NOTHING)).astype(np.uint8)


def _codes(rates: Reals) -> str:
    return base64.b64encode(coded(rates).tobytes()).decode()


def _parts(parts: pl.DataFrame | None) -> list[dict[str, Any]]:
    """Return what each application explains of a day, in GB by step, those of most bytes first, all others last."""
    if parts is None:
        return []
    found = []
    for (name,), own in parts.group_by("application_id", maintain_order=True):
        steps = np.bincount(own["step"].to_numpy(), own["explained_bytes"].to_numpy(), _STEPS)
        found.append({"application_id": name, "bytes": [float(f"{value:.4g}") for value in steps]})
    return sorted(found, key=lambda one: (one["application_id"] is None, -sum(one["bytes"])))
