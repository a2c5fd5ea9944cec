"""Encode file systems as data files: a heat map by day and minute for each, and one file per day with its runs."""

from __future__ import annotations

import base64
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import date
from typing import Any

import numpy as np
import polars as pl

from iosig.reports.site.packing import Content, columns, file_hash, pack_document
from iosig.reports.wall.storage_calendar import CalendarView
from iosig.transforms.arrays import Reals

_STEPS = 288
#: code of an unknown rate
#: code of a zero rate
#: code of the lowest positive rate; each octave above has `CODES_PER_OCTAVE` codes
GAP, NOTHING, FIRST = 0, 1, 2
MIN_BYTES_PER_S = 1e5
CODES_PER_OCTAVE = 8
_SCALE = {"least_bytes_per_s": MIN_BYTES_PER_S, "codes_per_octave": CODES_PER_OCTAVE}
_EPOCH = date(1970, 1, 1)
Codes = np.ndarray[Any, np.dtype[np.uint8]]


@dataclass(frozen=True, slots=True)
class FilesystemFrames:
    """Input of the file system pages; day: days since 1970.

    calendars: minute rates of each file system in both directions. parts: bytes attributed to applications (NULL: all
    others) in each five-minute step. runs: active runs of each day. slowed: runs with bursts detected in a day's
    traffic, and the losses of slowed bursts.
    """

    calendars: tuple[CalendarView, ...]
    parts: pl.DataFrame
    runs: pl.DataFrame
    slowed: pl.DataFrame


def contents(frames: FilesystemFrames) -> Iterator[Content]:
    """Yield the list of file systems, their heat maps and their day files."""
    yield from calendars(frames)
    yield from days(
        frames, [(calendar.filesystem, day) for calendar in frames.calendars for day in list_polled_days(calendar)]
    )


def calendars(frames: FilesystemFrames) -> Iterator[Content]:
    """Yield the list of file systems, and the heat map of each."""
    yield pack_document(
        "filesystems", [[calendar.filesystem, file_hash(calendar.filesystem)] for calendar in frames.calendars]
    )
    for calendar in frames.calendars:
        day_names = [day.isoformat() for day in calendar.days]
        yield pack_document(
            _place(calendar.filesystem), {**_scale(calendar), "days": day_names, **_texts(calendar, slice(None))}
        )


def list_polled_days(view: CalendarView) -> list[date]:
    """Return the days of a file system that have data, and therefore a page."""
    has_data = np.any([np.isfinite(rates.bytes_per_s).any(axis=1) for rates in view.rates], axis=0)
    return [day for day, is_known in zip(view.days, has_data, strict=True) if is_known]


def day_path(filesystem: str, day: date) -> str:
    """Return the path of a day's file."""
    return f"data/{_place(filesystem)}-{day.isoformat()}.js"


def days(frames: FilesystemFrames, chosen: Collection[tuple[str, date]]) -> Iterator[Content]:
    """Yield the data files of the chosen days, one per file system and day."""
    no_runs = frames.runs.drop("filesystem", "day").clear()
    runs = frames.runs.partition_by("filesystem", "day", as_dict=True, include_key=False)
    parts = frames.parts.partition_by("filesystem", "day", as_dict=True)
    slowed = frames.slowed.partition_by("filesystem", "day", as_dict=True, include_key=False)
    no_slowed = frames.slowed.drop("filesystem", "day").clear()
    for calendar in frames.calendars:
        for number, day in enumerate(calendar.days):
            if (calendar.filesystem, day) not in chosen:
                continue
            key = (calendar.filesystem, (day - _EPOCH).days)
            examined = slowed.get(key, no_slowed)
            details = {
                "parts": _parts(parts.get(key)),
                "runs": columns(runs.get(key, no_runs)),
                "looked_count": examined.height,
                "slowed": columns(examined.filter(pl.col("slowed_burst_count") > 0)),
            }
            document = {
                **_scale(calendar),
                "day": day.isoformat(),
                **_texts(calendar, slice(number, number + 1)),
                **details,
            }
            yield pack_document(f"{_place(calendar.filesystem)}-{day.isoformat()}", document)


def _place(filesystem: str) -> str:
    return f"filesystem/{file_hash(filesystem)}"


def _scale(calendar: CalendarView) -> dict[str, Any]:
    return {"filesystem": calendar.filesystem} | _SCALE


def _texts(calendar: CalendarView, rows: slice) -> dict[str, str]:
    return {rates.direction: _text(encode_rates(rates.bytes_per_s[rows])) for rates in calendar.rates}


def encode_rates(rates: Reals) -> Codes:
    """Encode rates [B/s]: `GAP` for NaN, `NOTHING` for 0, else a logarithmic code with errors up to 5 %."""
    with np.errstate(divide="ignore", invalid="ignore"):
        octaves = np.log2(rates / MIN_BYTES_PER_S)
    codes = np.clip(FIRST + np.rint(CODES_PER_OCTAVE * octaves), FIRST, 255)
    return np.where(np.isnan(rates), GAP, np.where(rates > 0, codes, NOTHING)).astype(np.uint8)


def _text(codes: Codes) -> str:
    return base64.b64encode(codes.tobytes()).decode()


def _parts(parts: pl.DataFrame | None) -> list[dict[str, Any]]:
    """Return the attributed GB of each application per step of a day, the largest first, all others merged last."""
    if parts is None:
        return []
    series = []
    for (name,), rows in parts.group_by("application_id", maintain_order=True):
        steps = np.bincount(rows["step"].to_numpy(), rows["attributed_bytes"].to_numpy(), _STEPS)
        series.append({"application_id": name, "bytes": [float(f"{value:.4g}") for value in steps]})
    return sorted(series, key=lambda item: (item["application_id"] is None, -sum(item["bytes"])))
