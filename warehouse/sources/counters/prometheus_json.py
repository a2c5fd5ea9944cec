"""Read responses of Prometheus' HTTP API to `query` and `query_range`, series by series.

Unchanged values are dropped while reading; the changes of a counter are merged at the end.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from iosig.warehouse.contracts.counters import SCRAPES
from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.counters import metrics, samples
from iosig.warehouse.sources.counters.changes import KEYS, convert_to_samples, fill_filesystems, pivot_points
from iosig.warehouse.sources.files.opening import read_head
from iosig.warehouse.sources.protocol import Batch, Reading
from iosig.warehouse.sources.rows.documents import MalformedError, text
from iosig.warehouse.sources.rows.field_use import note_fields
from iosig.warehouse.sources.rows.json_items import items
from iosig.warehouse.sources.rows.rejects import RefusedRow, build_reject_frame

_STATUS = re.compile(r'"status"\s*:\s*"(?:success|error)"')
_KIND = re.compile(r'"(?:resultType|errorType)"\s*:')
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?")
_REMEDY = "Query the metrics themselves, with /api/v1/query_range or /api/v1/query."
_DAY_US = 86_400_000_000
_MAX_VALUE = 2**63 - 1
_MAX_SHOWN_CHARS = 60
#: value of a time without a sound sample
_GAP = -1
_ROLES = tuple(metrics.ROLES)


def is_answer(text: str) -> bool:
    """Test whether the text starts like a response of the API."""
    is_object = text.lstrip().startswith("{")
    return is_object and _STATUS.search(text) is not None and _KIND.search(text) is not None


def is_answer_file(path: Path) -> bool:
    """Test whether a file starts like a response of the API."""
    return is_answer(read_head(path).text)


def read(path: Path, reading: Reading) -> Iterator[Batch]:
    """Read the series of a response, of which an empty one has none.

    Raises InputRefused if there are series, but none counts bytes or operations of storage, or if the response states
    that it failed or is partial.
    """
    series = _collect_series(items(path, "data.result", _REMEDY), reading)
    yield from series.batches()
    if series.item_count and not series.has_counters:
        raise InputRefused(
            "None of the series counts bytes or operations of storage.",
            "Name the site's own metrics in the settings (counters.columns); query them without functions.",
        )


def read_series(series_items: Iterable[object], reading: Reading) -> Iterator[Batch]:
    """Read series from one or more responses; skip those that count neither bytes nor operations of storage."""
    return _collect_series(series_items, reading).batches()


def _collect_series(series_items: Iterable[object], reading: Reading) -> _AllSeries:
    series = _AllSeries(reading)
    for number, item in enumerate(series_items, start=1):
        series.add(number, item)
    return series


@dataclass(slots=True)
class _AllSeries:
    """Collects the labels of each series and the points at which its value changed."""

    reading: Reading
    item_count: int = 0
    has_counters: bool = False
    names: list[dict[str, str | None]] = field(default_factory=list)
    refused: list[RefusedRow] = field(default_factory=list)
    _lines: list[int] = field(default_factory=list)
    _at: list[np.ndarray[Any, np.dtype[np.int64]]] = field(default_factory=list)
    _value: list[np.ndarray[Any, np.dtype[np.int64]]] = field(default_factory=list)
    _all_at: dict[tuple[str | None, ...], np.ndarray[Any, np.dtype[np.int64]]] = field(default_factory=dict)
    _counters: dict[tuple[str | None, ...], int] = field(default_factory=dict)

    def add(self, number: int, item: object) -> None:
        """Collect a series, or refuse it."""
        self.item_count += 1
        columns, roles = metrics.map_metrics(self.reading), metrics.map_labels(self.reading)
        labels, points = _parts(item)
        if labels is None or points is None:
            self.refused.append((number, "The item is not a series of values.", _REMEDY, str(item)))
            return
        try:
            for label, value in labels.items():
                text(value, f"The label {text(label, 'The name label_names a label')}")
        except MalformedError as error:
            self.refused.append((number, f"{error}.", "Correct the label where the metric is exported.", str(labels)))
            return
        name = labels.get("__name__")
        note_fields({metric: column or "a count" for metric, column in columns.items()}, [name or ""])
        if name not in columns:
            if name is None:
                reason = "The series has no name: it is the result of a function."
                self.refused.append((number, reason, _REMEDY, str(labels)))
            return
        key = {
            role: next((labels[label] for label in label_names if label in labels), None)
            for role, label_names in roles.items()
        }
        column = metrics.find_column(name, key["operation"], key["component"], columns)
        if name == metrics.GPFS_NODE or column is None:
            return
        if key["job_key"] is None and name.startswith("lustre_job_"):
            self.refused.append(
                (number, "The series belongs to a job, but has no label for the job.", _REMEDY, str(labels))
            )
            return
        if key["target"] is None:
            self.refused.append((number, "The series has no target.", _REMEDY, str(labels)))
            return
        self._add_points(number, {"name": name, **key}, points, str(labels))

    def _add_points(self, number: int, key: dict[str, str | None], points: list[Any], labels: str) -> None:
        """Collect the sound samples of a series, and refuse the others."""
        self.has_counters = True
        at_us, values, bad = _numbers(points)
        if bad:
            reason = f"{len(bad)} of {len(points)} samples are not a time and a non-negative integer, such as {bad[0]}."
            self.refused.append((number, reason, _REMEDY, labels))
        if (values != _GAP).any():
            self._keep(number, key, at_us, values)

    def _keep(self, number: int, key: dict[str, str | None], at_us: Any, values: Any) -> None:
        typical_us = np.diff(at_us).min(initial=np.iinfo(np.int64).max)
        at_us, values = at_us[values != _GAP], values[values != _GAP]
        is_new = np.ones(len(values), np.bool_)
        is_new[1:] = (np.diff(values) != 0) | (np.diff(at_us // _DAY_US) != 0) | (np.diff(at_us) / 1.5 > typical_us)
        self.names.append(key)
        self._lines.append(number)
        self._at.append(at_us[is_new])
        self._value.append(values[is_new])
        counter = tuple(key[role] for role in _ROLES if role != "operation")
        self._counters.setdefault(counter, len(self.names) - 1)
        known = self._all_at.setdefault(counter, at_us)
        if not np.array_equal(known, at_us):
            # a gap in one series is not a gap in the others of the counter
            self._all_at[counter] = np.union1d(known, at_us)

    def batches(self) -> Iterator[Batch]:
        """Yield the samples, the scrapes, and the refused rows."""
        if not self.names:
            yield from samples.build_sample_batches(build_reject_frame(self.refused))
            return
        series = pl.DataFrame(self.names, schema=dict.fromkeys(("name", *_ROLES), pl.String)).with_columns(
            line=pl.Series(self._lines, dtype=pl.Int64), place=pl.int_range(pl.len(), dtype=pl.Int64)
        )
        counted = metrics.select_counted_series(series, metrics.map_metrics(self.reading))
        counted = counted.with_columns(fill_filesystems(counted, self.reading)["filesystem"])
        lengths = [len(at) for at in self._at]
        points = pl.DataFrame(
            {
                "place": np.repeat(np.arange(len(lengths)), lengths),
                "at_us": np.concatenate(self._at),
                "value": np.concatenate(self._value),
            }
        ).join(counted, on="place", how="inner", maintain_order="left")
        rows = pivot_points(points)
        counts = [name for name in rows.columns if name.startswith("total_")]
        order = rows.sort(*KEYS, "at_us", nulls_last=False, maintain_order=True)
        filled = order.with_columns(pl.col(counts).forward_fill().over(KEYS, mapping_strategy="group_to_rows"))
        doubled = [
            (int(line), "Two series have the same labels.", _REMEDY, None)
            for line in filled.filter("is_doubled")["line"].unique().to_list()
        ]
        good = filled.filter(~pl.col("is_doubled")).drop("is_doubled").sort("at_us", maintain_order=True)
        yield from samples.build_sample_batches(
            build_reject_frame([*self.refused, *doubled]), convert_to_samples(good), self._scrapes(counted)
        )

    def _scrapes(self, counted: pl.DataFrame) -> pl.DataFrame:
        lengths = [len(at) for at in self._all_at.values()]
        first = pl.DataFrame(
            {
                "place": np.repeat(np.fromiter(self._counters.values(), np.int64), lengths),
                "at_us": np.concatenate(list(self._all_at.values())),
            }
        ).join(counted, on="place", how="inner")
        counted = first.group_by(
            "at_us", "filesystem", "component", "target", "collector", pl.col("job_key").is_not_null().alias("is_job")
        ).agg(pl.len().cast(pl.Int64).alias("entry_count"))
        scrapes = counted.with_columns(scraped_at=samples.instants(pl.col("at_us")), is_job_scrape=pl.col("is_job"))
        return scrapes.sort("at_us", "target", "is_job").select(SCRAPES.column_names)


def _parts(item: object) -> tuple[Mapping[str, str] | None, list[Any] | None]:
    if not isinstance(item, dict):
        return None, None
    labels, single, many = item.get("metric"), item.get("value"), item.get("values")
    points = [single] if single is not None else many
    is_sound = isinstance(labels, dict) and all(isinstance(value, str) for value in labels.values())
    return (labels, points) if is_sound and isinstance(points, list) and points else (None, None)


def _numbers(points: list[Any]) -> tuple[Any, Any, list[str]]:
    """Parse times [us] and integer values in time order, and return the malformed samples as text.

    A malformed value, and a NaN, which Prometheus stores for a failed scrape, become `_GAP`.
    """
    parsed: list[tuple[int, int]] = []
    bad: list[str] = []
    for point in points:
        try:
            timestamp, value = point
            at_us = _parse_time_us(timestamp)
            parsed.append((at_us, _GAP))
            if str(value) != "NaN":
                parsed[-1] = (at_us, _parse_integral(str(value)))
        except (ValueError, TypeError, OverflowError):
            bad.append(str(point)[:_MAX_SHOWN_CHARS])
    times_us, values = np.array(parsed, np.int64).reshape(-1, 2).T
    order = np.argsort(times_us, kind="stable")
    return times_us[order], values[order], bad


def _parse_time_us(timestamp: Any) -> int:
    at_us = round(float(timestamp) * 1e6)
    if not 0 < at_us < 9e15:
        raise ValueError(timestamp)
    return at_us


def _parse_integral(text: str) -> int:
    if not _NUMBER.fullmatch(text):
        raise ValueError(text)
    number = int(text) if text.isdigit() else float(text)
    if number != int(number) or number > _MAX_VALUE:
        raise ValueError(text)
    return int(number)
