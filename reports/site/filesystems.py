"""File systems as data: a heat map of minutes and days for each, and a file a day with who was on it."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from typing import Any

import numpy as np
import polars as pl

from reports.site.packing import Content, columns, file_hash, packed
from reports.wall.storage_calendar import CalendarView
from transforms.arrays import Reals

_STEPS = 288
#: codes of rates: nothing is known, nothing was moved, then eight to an octave from this rate on
GAP, NOTHING, FIRST = 0, 1, 2
LEAST_BYTES_PER_S = 1e5
CODES_PER_OCTAVE = 8
_SCALE = {"least_bytes_per_s": LEAST_BYTES_PER_S, "codes_per_octave": CODES_PER_OCTAVE}
_EPOCH = date(1970, 1, 1)
Codes = np.ndarray[Any, np.dtype[np.uint8]]


@dataclass(frozen=True, slots=True)
class FilesystemFrames:
    """What there is to tell of file systems; day: days since 1970.

    calendars: the rates of each one's minutes, in both directions. parts: what applications (NULL: all others) explain
    in each step of five minutes. runs: who was there on each day.
    """

    calendars: tuple[CalendarView, ...]
    parts: pl.DataFrame
    runs: pl.DataFrame


def contents(frames: FilesystemFrames) -> Iterator[Content]:
    """Yield the list of file systems, the heat map of each, and each one's days."""
    yield packed("filesystems", [[one.filesystem, file_hash(one.filesystem)] for one in frames.calendars])
    for one in frames.calendars:
        yield from _of_one(frames, one)


def _of_one(frames: FilesystemFrames, told: CalendarView) -> Iterator[Content]:
    codes = {rates.direction: coded(rates.bytes_per_s) for rates in told.rates}
    place, scale = f"filesystem/{file_hash(told.filesystem)}", {"filesystem": told.filesystem} | _SCALE
    days = [day.isoformat() for day in told.days]
    yield packed(place, {**scale, "days": days, **{name: _text(of) for name, of in codes.items()}})
    own = {"filesystem": told.filesystem}
    runs = frames.runs.filter(**own).drop("filesystem").partition_by("day", as_dict=True, include_key=False)
    parts = frames.parts.filter(**own).partition_by("day", as_dict=True)
    for number, day in enumerate(told.days):
        if not any(of[number].any() for of in codes.values()):
            continue
        since_1970 = (day - _EPOCH).days
        there = runs.get((since_1970,), frames.runs.drop("filesystem", "day").clear())
        rates = {name: _text(of[number]) for name, of in codes.items()}
        more = {"parts": _parts(parts.get((since_1970,))), "runs": columns(there)}
        yield packed(f"{place}-{day.isoformat()}", {**scale, "day": day.isoformat(), **rates, **more})


def coded(rates: Reals) -> Codes:
    """Return rates [B/s] as codes: `GAP` for NaN, `NOTHING` for none, else by octaves, to 5 %."""
    with np.errstate(divide="ignore", invalid="ignore"):
        octaves = np.log2(rates / LEAST_BYTES_PER_S)
    codes = np.clip(FIRST + np.rint(CODES_PER_OCTAVE * octaves), FIRST, 255)
    return np.where(np.isnan(rates), GAP, np.where(rates > 0, codes, NOTHING)).astype(np.uint8)


def _text(codes: Codes) -> str:
    return base64.b64encode(codes.tobytes()).decode()


def _parts(parts: pl.DataFrame | None) -> list[dict[str, Any]]:
    """Return what each application explains of a day, in GB by step, those of most bytes first, all others last."""
    if parts is None:
        return []
    found = []
    for (name,), own in parts.group_by("application_id", maintain_order=True):
        steps = np.bincount(own["step"].to_numpy(), own["explained_bytes"].to_numpy(), _STEPS)
        found.append({"application_id": name, "bytes": [float(f"{value:.4g}") for value in steps]})
    return sorted(found, key=lambda one: (one["application_id"] is None, -sum(one["bytes"])))
