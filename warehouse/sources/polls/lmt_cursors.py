"""Keep the read position in an LMT database, with the counter state of each target that later readings need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from iosig.warehouse.sources.rows.counters import Marks, Numbers
from iosig.warehouse.sources.rows.times import INSTANT

#: rate -> counter from which it is derived
DIRECTIONS = {"read_bytes_per_s": "READ_BYTES", "write_bytes_per_s": "WRITE_BYTES"}
#: state per counter: first reading, readings before and after the last decrease (or else the first), last reading
_STATE_FIELDS = ("first", "top", "base", "last")


@dataclass(frozen=True, slots=True)
class CounterState:
    """TS_ID and instant [us] of a target's last reading, and the values `_STATE_FIELDS` of both counters."""

    ts_id: int
    instant_us: int
    read_bytes: tuple[int, int, int, int]
    write_bytes: tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class Cursor:
    """Read position in a database: the last read instant (TS_ID and time [us]), and the state of each target."""

    ts_id: int
    instant_us: int | None = None
    counted: Mapping[int | str, CounterState] = field(default_factory=dict)

    def plain(self) -> dict[str, Any]:
        """Return the cursor as JSON-compatible values."""
        targets = [
            [ost_id, state.ts_id, state.instant_us, *state.read_bytes, *state.write_bytes]
            for ost_id, state in self.counted.items()
        ]
        return {"ts_id": self.ts_id, "instant_us": self.instant_us, "targets": targets}

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Cursor:
        """Restore a cursor from the values of `plain`."""
        counted = {
            item[0]: CounterState(item[1], item[2], tuple(item[3:7]), tuple(item[7:11])) for item in plain["targets"]
        }
        return cls(plain["ts_id"], plain["instant_us"], counted)


def convert_to_readings(places: Sequence[int], states: Sequence[CounterState]) -> pl.DataFrame:
    """Build readings that have the same state as all earlier ones; each has the time of its target's last reading."""
    count = len(_STATE_FIELDS)
    columns = {
        "target": [place for place in places for _ in range(count)],
        "TS_ID": [state.ts_id for state in states for _ in range(count)],
        "READ_BYTES": [value for state in states for value in state.read_bytes],
        "WRITE_BYTES": [value for state in states for value in state.write_bytes],
        "instant": [state.instant_us for state in states for _ in range(count)],
    }
    frame = pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.Int64))
    return frame.with_columns(pl.col("instant").cast(INSTANT), is_new=pl.lit(False))


def summarize_readings(
    readings: pl.DataFrame, is_first: Marks, ost_ids: Sequence[int | str]
) -> dict[int | str, CounterState]:
    """Summarize the readings of several targets, given one target after the other, as a state per target."""
    firsts = np.flatnonzero(is_first)
    lasts = np.append(firsts[1:], len(is_first)) - 1
    counter_states = [
        _summarize_counter(readings[name].to_numpy(), is_first, firsts, lasts) for name in DIRECTIONS.values()
    ]
    ts_ids = np.maximum.reduceat(readings["TS_ID"].to_numpy(), firsts).tolist()
    instants = readings["instant"].dt.epoch("us").to_numpy()[lasts].tolist()
    places = readings["target"].to_numpy()[firsts].tolist()
    return {
        ost_ids[place]: CounterState(ts_id, instant_us, tuple(read), tuple(write))
        for place, ts_id, instant_us, read, write in zip(places, ts_ids, instants, *counter_states, strict=True)
    }


def _summarize_counter(values: Numbers, is_first: Marks, firsts: Numbers, lasts: Numbers) -> list[list[int]]:
    """Return, per counter, the state (`_KEPT`) from which `counters.flag_server_counters` can continue."""
    falls = ~is_first & (values < np.roll(values, 1))
    fall = np.maximum.accumulate(np.where(falls, np.arange(len(values)), 0))[lasts]
    has_fallen = fall > firsts
    top, base = np.where(has_fallen, fall - 1, firsts), np.where(has_fallen, fall, firsts)
    states: list[list[int]] = np.stack([values[firsts], values[top], values[base], values[lasts]], axis=1).tolist()
    return states
