"""Attribute the traffic of a file system to runs, and estimate slowdowns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
import polars as pl

from iosig.estimates.columns import epoch_s, floats, ints, ragged
from iosig.estimates.signatures.published import PLACE
from iosig.transforms.arrays import Ints, Ragged, Reals, offsets_of, places_of
from iosig.transforms.attribution.explanation import Explanation, explain_traffics, range_factors
from iosig.transforms.attribution.runs import RunBytes, Runs
from iosig.transforms.attribution.server_counts import distribute_counts
from iosig.transforms.attribution.slowdowns import (
    ContentionSlope,
    RunTraffic,
    compute_contention,
    estimate_slope,
    estimate_slowdowns,
    find_interference,
)
from iosig.warehouse.contracts.attribution import PLACED_IO, SLOWDOWNS

RUN = ("cluster", "job_id", "started_at", "filesystem")
_WHO = (*RUN, "ended_on", "application_id")
_RATES = {"read": "read_bytes_per_s", "write": "write_bytes_per_s"}
_MINUTE_US = 60_000_000
_BURST = ("start_s", "end_s", "volume_bytes")
_BURST_KEY = (*RUN, "direction", "burst")
#: minimum fraction of a burst's volume that must be in the traffic for the burst to count as found
_MIN_FILLED_RATIO = 0.5


def list_signatures(signatures: pl.DataFrame, bursts: pl.DataFrame) -> pl.DataFrame:
    """Return the extracted default signatures of bytes, with their bursts as list columns."""
    key = [*PLACE, "method"]
    chosen = signatures.filter("is_default", metric="bytes", outcome="extracted")
    listed = (
        bursts.filter(metric="bytes")
        .join(chosen.select(key), on=key, how="semi")
        .sort(*key, "burst")
        .group_by(key, maintain_order=True)
        .agg(pl.col(name).alias(f"burst_{name}") for name in _BURST)
    )
    return (
        chosen.select(*PLACE, "duration_s", "expected_correlation", "method")
        .join(listed, on=key, how="inner")
        .drop("method")
    )


@dataclass(frozen=True, slots=True)
class ActiveRuns:
    """Active runs on a file system in one direction: those with a signature, and those with server counters."""

    signed: pl.DataFrame
    counted: pl.DataFrame

    @classmethod
    def select(cls, runs: pl.DataFrame, signatures: pl.DataFrame, counted: pl.DataFrame) -> ActiveRuns:
        """Select the runs with known I/O; server counters take precedence over a signature."""
        series = runs.join(counted.drop("direction"), on=RUN, how="inner", maintain_order="left")
        uncounted = runs.join(counted, on=RUN, how="anti", maintain_order="left")
        by_application = signatures.drop("filesystem", "direction")
        return cls(uncounted.join(by_application, on="application_id", how="inner", maintain_order="left"), series)

    @property
    def has_own(self) -> bool:
        """Whether any run belongs to the day itself."""
        return any(runs["is_own"].any() for runs in (self.signed, self.counted))

    def window(self) -> tuple[datetime, datetime]:
        """Return the first start and the last end of the day's own runs."""
        times = pl.concat(
            [runs.filter("is_own").select("started_at", "ended_at") for runs in (self.signed, self.counted)]
        )
        first, last = times.select(pl.col("started_at").min(), pl.col("ended_at").max()).row(0)
        return first, last


@dataclass(frozen=True, slots=True)
class Traffic:
    """Bytes in each step of a grid, NaN if not polled; start_s: start of the first step [s since 1970]."""

    volume_bytes: Reals
    start_s: float
    interval_s: float

    def places(self, instants: pl.Series) -> Reals:
        """Convert instants to fractional step indices."""
        places: Reals = (epoch_s(instants) - self.start_s) / self.interval_s
        return places

    def sum_between(self, start_s: Reals, end_s: Reals) -> Reals:
        """Return the bytes between times [s since 1970], interpolated within steps."""
        cumulative = np.concatenate([[0.0], np.cumsum(np.nan_to_num(self.volume_bytes))])
        edges = self.start_s + np.arange(len(cumulative)) * self.interval_s
        volumes: Reals = np.interp(end_s, edges, cumulative) - np.interp(start_s, edges, cumulative)
        return volumes


@dataclass(frozen=True, slots=True)
class TrafficAttribution:
    """Attribution of a direction's traffic: exact bytes of runs with counters, and estimates for the rest."""

    there: ActiveRuns
    traffic: Traffic
    direction: str
    exact: RunBytes
    runs: Runs
    explained: Explanation

    @classmethod
    def attribute(cls, inputs: Sequence[tuple[ActiveRuns, Traffic, str]]) -> list[TrafficAttribution]:
        """Attribute the traffic of each direction of a file system to its runs."""
        prepared, residuals = [], []
        for active_runs, traffic, direction in inputs:
            exact, runs = _distribute_counters(active_runs.counted, traffic), _runs(active_runs.signed, traffic)
            counted_bytes = np.bincount(exact.step, exact.volume_bytes, len(traffic.volume_bytes))
            prepared.append((active_runs, traffic, direction, exact, runs))
            residuals.append((np.maximum(traffic.volume_bytes - counted_bytes, 0.0), runs))
        if not residuals:
            return []
        explained = explain_traffics(residuals, prepared[0][1].interval_s)
        return [cls(*fields, explanation) for fields, explanation in zip(prepared, explained, strict=True)]

    def rows(self) -> pl.DataFrame:
        """Return rows of `placed_io` for the day's own runs."""
        exact, explained = self.exact, self.explained
        low, high = range_factors(explained.confidence)
        signed = self.there.signed.with_columns(
            confidence=pl.Series(explained.confidence),
            low=pl.Series(low),
            high=pl.Series(high),
            estimate_source=pl.lit("attributed"),
        )
        counted = self.there.counted.with_columns(confidence=1.0, low=1.0, high=1.0)
        return pl.concat(
            [
                _rows(
                    signed,
                    _minutes(explained.run, explained.step, explained.volume_bytes, self.traffic),
                    self.direction,
                ),
                _rows(counted, _minutes(exact.run, exact.step, exact.volume_bytes, self.traffic), self.direction),
            ]
        )


def _distribute_counters(counted_runs: pl.DataFrame, traffic: Traffic) -> RunBytes:
    """Distribute the server counters of runs to the grid of the traffic."""
    rates, lasting = ragged(counted_runs["sample_bytes_per_s"]), floats(counted_runs["counted_s"])
    volumes = Ragged(rates.values * np.repeat(lasting, np.diff(rates.offsets)), rates.offsets)
    return distribute_counts(
        volumes, traffic.places(counted_runs["grid_started_at"]), lasting / traffic.interval_s, traffic.volume_bytes
    )


def _runs(signed_runs: pl.DataFrame, traffic: Traffic) -> Runs:
    """Return runs with their bursts in grid steps; a run without an end continues to the end of the grid."""
    burst_start, burst_end, volume = (
        floats(signed_runs[f"burst_{name}"].explode(empty_as_null=False)) for name in _BURST
    )
    started, ended = (traffic.places(signed_runs[name]) for name in ("started_at", "ended_at"))
    return Runs.from_signatures(
        (
            started,
            np.nan_to_num(ended, nan=len(traffic.volume_bytes)),
            floats(signed_runs["duration_s"]) / traffic.interval_s,
        ),
        # 0.5 is the default for methods without an expected correlation
        (
            floats(signed_runs["expected_correlation"].fill_null(0.5)),
            ints(signed_runs["application_id"].rank("dense")) - 1,
        ),
        offsets_of(signed_runs["burst_volume_bytes"].list.len().to_numpy().astype(np.int64)),
        (burst_start / traffic.interval_s, burst_end / traffic.interval_s, volume),
    )


def _minutes(run: Ints, step: Ints, volume_bytes: Reals, traffic: Traffic) -> pl.DataFrame:
    """Aggregate bytes per run and minute (right edge); each step is spread evenly over its interval.

    run, step: sorted by run, then by step.
    """
    step_us = round(traffic.interval_s * 1e6)
    until_us = np.round((traffic.start_s + (step + 1) * traffic.interval_s) * 1e6).astype(np.int64)
    first = (until_us - step_us) // _MINUTE_US
    counts = -(-until_us // _MINUTE_US) - first
    minute, place = places_of(first, counts), np.repeat(np.arange(len(step)), counts)
    begun_us = np.maximum(until_us[place] - step_us, minute * _MINUTE_US)
    volume = volume_bytes[place] * ((np.minimum(until_us[place], (minute + 1) * _MINUTE_US) - begun_us) / step_us)
    is_first = np.diff(run[place], prepend=-1) != 0
    is_first |= np.diff(minute, prepend=-1) != 0
    # sequential sum: the last bits of Polars' sums depend on the number of threads
    summed = np.bincount(np.cumsum(is_first) - 1, volume).astype(np.float64)
    minute_us = (minute[is_first] + 1) * _MINUTE_US
    return pl.DataFrame({"run": run[place][is_first], "minute_us": minute_us, "attributed_bytes": summed})


def _rows(active_runs: pl.DataFrame, minutes: pl.DataFrame, direction: str) -> pl.DataFrame:
    """Build rows of `placed_io` for the day's own runs."""
    volume = minutes["attributed_bytes"]
    return (
        active_runs.select(pl.exclude("direction"))[minutes["run"].to_numpy()]
        .with_columns(
            volume,
            direction=pl.lit(direction),
            minute_at=minutes["minute_us"].cast(pl.Datetime("us")).dt.replace_time_zone("UTC"),
            attributed_low_bytes=volume * pl.col("low"),
            attributed_high_bytes=volume * pl.col("high"),
        )
        .filter("is_own")
        .select(PLACED_IO.column_names)
    )


def compute_slowdowns(attributions: Sequence[TrafficAttribution]) -> pl.DataFrame:
    """Compute rows of `slowdowns` for the day's own runs, from one or both directions of a file system."""
    run_table = pl.concat(
        [
            runs.select(*_WHO)
            for attribution in attributions
            for runs in (attribution.there.signed, attribution.there.counted)
        ]
    )
    run_table = run_table.unique(RUN, maintain_order=True).with_row_index("who")
    moves = _merge_traffic(attributions, run_table)
    bursts = _add_delays(
        pl.concat([_bursts(attribution, run_table) for attribution in attributions]), attributions, moves
    )
    slowed = bursts.filter(pl.col("outcome") == "slowed")
    interference = find_interference(ints(slowed["who"]), floats(slowed["start_s"]), floats(slowed["end_s"]), moves)
    interferer_names = run_table.select(
        first="who", **{f"top_interferer_{name}": name for name in ("job_id", "started_at", "application_id")}
    )
    interferers = (
        slowed.select(*_BURST_KEY, unattributed_bytes=pl.col("there_bytes") - pl.Series(interference.interfering_bytes))
        .with_columns(
            pl.col("unattributed_bytes").clip(0),
            interfering_bytes=pl.Series(interference.interfering_bytes),
            top_interferer_bytes=pl.Series(np.where(interference.top_run < 0, np.nan, interference.top_bytes)).fill_nan(
                None
            ),
            first=pl.Series(np.maximum(interference.top_run, 0)).cast(pl.UInt32),
        )
        .with_columns(first=pl.when(pl.col("top_interferer_bytes").is_not_null()).then("first"))
        .join(interferer_names, on="first", how="left")
    )
    rows = bursts.join(interferers, on=_BURST_KEY, how="left", maintain_order="left")
    return rows.filter("is_own").select(SLOWDOWNS.column_names)


def _bursts(attribution: TrafficAttribution, run_table: pl.DataFrame) -> pl.DataFrame:
    """Return all bursts that were searched for, with times in seconds since 1970."""
    placements, runs, traffic = attribution.explained.placements, attribution.runs, attribution.traffic
    at = runs.offsets[placements.run] + placements.burst
    expected_s = traffic.start_s + (runs.started[placements.run] + runs.burst_start[at]) * traffic.interval_s
    start_s, end_s = (traffic.start_s + steps * traffic.interval_s for steps in (placements.started, placements.ended))
    signed_runs = attribution.there.signed.select(*_WHO, "is_own", "duration_s", "ended_at")
    return (
        signed_runs[placements.run]
        .with_columns(
            direction=pl.lit(attribution.direction),
            burst=pl.Series(placements.burst),
            is_found=pl.Series(placements.filled_ratio >= _MIN_FILLED_RATIO),
            confidence=pl.Series(attribution.explained.confidence[placements.run]),
            expected_s=pl.Series(expected_s),
            start_s=pl.Series(start_s),
            end_s=pl.Series(end_s),
            alone_s=pl.Series(runs.burst_duration[at] * traffic.interval_s),
            meant_bytes=pl.Series(runs.volume_bytes[at]),
            withheld_bytes=pl.Series(
                np.where(placements.is_attributed, 0.0, placements.filled_ratio) * runs.volume_bytes[at]
            ),
            step_s=traffic.interval_s,
        )
        .join(run_table.select("who", *RUN), on=RUN, how="left", maintain_order="left")
    )


def _add_delays(bursts: pl.DataFrame, attributions: Sequence[TrafficAttribution], moves: RunTraffic) -> pl.DataFrame:
    """Add delay, slowdown and background bytes to bursts."""
    start_s, end_s = floats(bursts["start_s"]), floats(bursts["end_s"])
    total_bytes: Reals = np.sum(
        [attribution.traffic.sum_between(start_s, end_s) for attribution in attributions], axis=0
    )
    # an ambiguous burst has no attributed bytes, but its bytes are not interference either
    run_bytes = moves.sum_between(ints(bursts["who"]), start_s, end_s) + floats(bursts["withheld_bytes"])
    background_bytes = np.maximum(total_bytes - run_bytes, 0.0)
    alone_s, expected_bytes = floats(bursts["alone_s"]), floats(bursts["meant_bytes"])
    crowded_s = (
        compute_contention(alone_s, expected_bytes, end_s - start_s, background_bytes) * bursts["is_found"].to_numpy()
    )
    measured = bursts.with_columns(there_bytes=pl.Series(background_bytes), crowded_s=pl.Series(crowded_s))
    slowdowns = estimate_slowdowns(crowded_s, _estimate_contention_slope(measured), attributions[0].traffic.interval_s)
    outcome = np.where(bursts["is_found"], np.where(slowdowns.is_delayed, "slowed", "not_slowed"), "not_found")
    values = {
        "start_delay_s": pl.Series(start_s) - measured["expected_s"],
        "delay_s": pl.Series(slowdowns.delay),
        "delay_low_s": pl.Series(slowdowns.low),
        "delay_high_s": pl.Series(slowdowns.high),
        "burst_started_at": _instants(start_s),
        "burst_ended_at": _instants(end_s),
    }
    return measured.with_columns(
        outcome=pl.Series(outcome, dtype=pl.String),
        burst_expected_at=_instants(floats(measured["expected_s"])),
        **{name: pl.when("is_found").then(value) for name, value in values.items()},
    )


def _estimate_contention_slope(bursts: pl.DataFrame) -> ContentionSlope:
    """Estimate the contention slope from runs that have ended."""
    duration = (pl.col("ended_at") - pl.col("started_at")).dt.total_microseconds() / 1e6
    ended_bursts = bursts.filter(pl.col("ended_at").is_not_null())
    runs = (
        ended_bursts.group_by("who", maintain_order=True)
        .agg(pl.col("application_id").first(), pl.col("duration_s").max(), lasted_s=duration.first())
        .with_columns(application=pl.col("application_id").rank("dense"))
    )
    # sequential sum, as in `_minutes`
    crowded_s = np.bincount(ints(ended_bursts["who"]), floats(ended_bursts["crowded_s"])).astype(np.float64)[
        ints(runs["who"])
    ]
    late_s = floats(runs["lasted_s"]) - floats(runs["duration_s"])
    return estimate_slope(late_s, crowded_s, floats(runs["duration_s"]), ints(runs["application"]))


def _instants(seconds: Reals) -> pl.Series:
    """Convert seconds since 1970 to instants."""
    microseconds = np.round(seconds * 1e6).astype(np.int64)
    return pl.Series(microseconds).cast(pl.Datetime("us")).dt.replace_time_zone("UTC")


def _merge_traffic(attributions: Sequence[TrafficAttribution], run_table: pl.DataFrame) -> RunTraffic:
    """Return the traffic of all runs, over all directions."""
    parts: list[tuple[Ints, Reals, Reals]] = []
    for attribution in attributions:
        for active_runs, moved in (
            (attribution.there.signed, attribution.explained),
            (attribution.there.counted, attribution.exact),
        ):
            number = (
                active_runs.select(*RUN).join(run_table, on=RUN, how="left", maintain_order="left")["who"].to_numpy()
            )
            at_s = attribution.traffic.start_s + (moved.step.astype(np.float64) + 1) * attribution.traffic.interval_s
            parts.append((number[moved.run].astype(np.int64), at_s, moved.volume_bytes))
    run = np.concatenate([run for run, _, _ in parts])
    at_s, volume = (np.concatenate([part[place] for part in parts]) for place in (1, 2))
    order = np.lexsort((at_s, run))
    return RunTraffic(run[order], at_s[order], volume[order], run_table.height)


def extract_traffic(grid: pl.DataFrame, direction: str, window: tuple[datetime, datetime]) -> Traffic:
    """Return the traffic of a window and of the step after it, from rows of `grid_steps` of one grid."""
    step_us, phase_us = grid["step_us"][0], grid["phase_us"][0]
    edge_us = pl.col("step") * step_us + phase_us
    first_us, last_us = (round(at.timestamp() * 1e6) for at in window)
    cut = grid.filter(edge_us > first_us, edge_us < last_us + step_us)
    began_us = (cut["step"][0] - 1) * step_us + phase_us if cut.height else 0
    return Traffic(floats(cut[_RATES[direction]]) * step_us / 1e6, began_us / 1e6, step_us / 1e6)
