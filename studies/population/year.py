"""A year of jobs with the shares of PEARC'18 planted, and what `iosig population` recovers of them.

White et al., PEARC'18 (DOI 10.1145/3219104.3219121), section 6: Tables 1 and 2, Figures 2 to 5. The job data are not
published, so jobs are drawn: their classes from Table 1, their share of periods from Table 2, and periods with the
peaks of Figures 4 and 5. Each job is measured every 30 s, as in the paper, with lost measurements. Classes and periods
are those of the night's transforms, and the statistics those of `iosig population`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
import polars as pl

from iosig.answers.population.query import EVEN, Population, Query, query_population
from iosig.estimates.periods import get_params
from iosig.settings.model import Settings
from iosig.transforms import classes
from iosig.transforms.arrays import Ints, Ragged, Reals, offsets_of
from iosig.transforms.periods import search
from iosig.transforms.periods.interface.even_signals import EvenSignals
from iosig.warehouse.contracts import TABLES, frames
from iosig.warehouse.contracts.types import Table

#: classes in the order of Table 1
LABELS = ("HILL", "START", "END", "UNIFORM", "OTHER", "CANYON", "NO_USAGE")
#: Table 1 of the paper: number of jobs by read class (rows) and write class (columns); its sums are those of Table 2
JOB_COUNTS = np.array(
    [
        [1166, 652, 170, 30, 131, 116, 138],
        [218, 4829, 2053, 7694, 2010, 2642, 2356],
        [3366, 4395, 4263, 518, 8899, 1840, 397],
        [106, 621, 521, 9554, 1336, 241, 545],
        [240, 837, 713, 2874, 9731, 833, 112],
        [1389, 730, 2208, 1130, 2793, 11397, 847],
        [1468, 775, 32885, 7077, 2234, 2824, 492980],
    ]
)
#: Table 2 of the paper: jobs that are periodic and have I/O over the whole run, of all jobs
PERIODIC_RATIOS = {"write": 0.0355, "read": 0.0131}
#: peaks in Figures 4 and 5 [s], and our shares of the periods, since the paper has none
PEAKS_S = {"write": (180.0, 780.0, 3720.0), "read": (180.0,)}
_PEAK_RATIO = 0.75
#: interval of the measurements [s] (section 6)
INTERVAL_S = 30.0
#: relative distance to a peak up to which a period belongs to it
NEAR_RATIO = 0.05
#: jobs of more than 12 hours are periodic twice as often as all jobs (section 6)
_LONG_S, _LONG_FACTOR = 43200.0, 2.0
#: minimum number of cycles of a planted period
_MIN_CYCLES = 5.0
#: shares of the bytes in the quarters of a run, by class (ours, clearly within the rules of section 4.1)
_QUARTERS = {
    "HILL": (0.08, 0.42, 0.42, 0.08),
    "START": (0.85, 0.05, 0.05, 0.05),
    "END": (0.05, 0.05, 0.05, 0.85),
    "UNIFORM": (0.25, 0.25, 0.25, 0.25),
    "OTHER": (0.35, 0.30, 0.20, 0.15),
    "CANYON": (0.45, 0.04, 0.04, 0.47),
    "NO_USAGE": (0.25, 0.25, 0.25, 0.25),
}
#: variation of these shares between jobs, of the rate between measurements, and of the gaps between bursts
_QUARTER_SPREAD, _RATE_SHAPE, _JITTER_RATIO = 0.1, 4.0, 0.03
#: length of a burst, relative to the period
_BURST_RATIO = 0.15
#: share of lost measurements
_LOST_RATIO = 0.01
#: duration of jobs [s]: median, logarithmic spread, and limits; bytes per node: median and logarithmic spread
_DURATION_S, _DURATION_SPREAD, _DURATION_LIMITS_S = 10_800.0, 1.2, (620.0, 259_200.0)
_BYTES_PER_NODE, _BYTES_SPREAD, _LEAST_BYTES = 2e9, 2.0, 2e6
_APPLICATIONS = ("gromacs", "lammps", "wrf", "vasp", "namd", "espresso", "amber", "own code")
_USER_COUNT, _MAX_DOUBLINGS = 40, 6
_START, _YEAR_S = datetime(2026, 1, 1, tzinfo=UTC), 365 * 86400.0
_CLUSTER, _FILESYSTEM = "rush", "scratch"
#: search methods: iosig's default, and the paper's
METHODS = ("null_tested", "autoperiod")


@dataclass(frozen=True, slots=True)
class Year:
    """Planted jobs, and the population recovered from their measurements.

    planted: one row per job and direction: job_id, direction, label, period_s (NULL: none), bytes, and of the job
    user, application, node_count, duration_s, node_hours. population: by application, with the default method's
    periods. durations: the same by duration. published: with the periods of the paper's method. example: the rates of
    a job whose writes have the longest planted peak, to draw the search of the paper's method.
    """

    planted: pl.DataFrame
    population: Population
    durations: Population
    published: Population
    example: EvenSignals


def simulate_year(job_count: int, seed: int) -> Year:
    """Draw the jobs of a year, measure them, and compute their statistics; the same seed gives the same year."""
    generator = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(job_count,)))
    jobs = draw_jobs(job_count, generator)
    planted = pl.concat([_plant_direction(jobs, direction, generator) for direction in ("write", "read")])
    rates = {name: draw_rates(planted.filter(direction=name), generator) for name in ("write", "read")}
    measured = [_measure_direction(planted.filter(direction=name), *rates[name]) for name in rates]
    class_rows = pl.concat([rows for rows, _ in measured])
    period_rows = pl.concat([rows for _, rows in measured])

    def query(by: str, method: str) -> Population:
        tables = {"jobs": jobs, "classes": class_rows, "periods": period_rows.filter(method=method)}
        return _query(tables, Query(by=by))  # type: ignore[arg-type]

    return Year(
        planted,
        query("application", METHODS[0]),
        query("duration", METHODS[0]),
        query("application", METHODS[1]),
        _select_example(planted.filter(direction="write"), *rates["write"]),
    )


def _select_example(planted: pl.DataFrame, rates: Ragged, grid_start_s: Reals) -> EvenSignals:
    """Return a job with the longest period of the peaks, or else with any period, and a dozen cycles if possible."""
    is_peak, cycle_counts = planted["period_s"] == max(PEAKS_S["write"]), planted["duration_s"] / planted["period_s"]
    order = planted.select(place=pl.int_range(pl.len()), is_other=~is_peak, distance=(cycle_counts - 12.0).abs())
    place = int(order.sort("is_other", "distance", nulls_last=True)["place"][0])
    values = rates.values[rates.offsets[place] : rates.offsets[place + 1]]
    return EvenSignals.from_samples(values, 1.0 / INTERVAL_S, float(grid_start_s[place]))


# ---- planted jobs


def draw_jobs(count: int, generator: np.random.Generator) -> pl.DataFrame:
    """Draw the job log, with the planted class of writes and reads of each job."""
    cells = generator.choice(JOB_COUNTS.size, count, p=(JOB_COUNTS / JOB_COUNTS.sum()).ravel())
    read, write = np.unravel_index(cells, JOB_COUNTS.shape)
    duration_s = np.clip(_DURATION_S * np.exp(_DURATION_SPREAD * generator.standard_normal(count)), *_DURATION_LIMITS_S)
    start_s = generator.uniform(0.0, _YEAR_S - _DURATION_LIMITS_S[1], count)
    # users repeat their own configurations: few applications and node counts each
    user = np.minimum(generator.geometric(0.08, count), _USER_COUNT) - 1
    application = (user + generator.integers(0, 2, count)) % len(_APPLICATIONS)
    doublings = (user + generator.integers(0, 2, count)) % (_MAX_DOUBLINGS + 1)
    return pl.DataFrame(
        {
            "cluster": _CLUSTER,
            "job_id": [str(number) for number in range(count)],
            "user": [f"user{number}" for number in user.tolist()],
            "account": "general",
            "application": [_APPLICATIONS[number] for number in application.tolist()],
            "node_count": np.int64(1) << doublings,
            "started_s": start_s,
            "duration_s": duration_s,
            "is_application_run": True,
            "write": [LABELS[number] for number in write.tolist()],
            "read": [LABELS[number] for number in read.tolist()],
        }
    ).with_columns(
        started_at=_to_instant(pl.col("started_s")),
        ended_at=_to_instant(pl.col("started_s") + pl.col("duration_s")),
        ended_on=_to_instant(pl.col("started_s") + pl.col("duration_s")).dt.date(),
        node_hours=pl.col("node_count") * pl.col("duration_s") / 3600.0,
    )


def _to_instant(seconds: pl.Expr) -> pl.Expr:
    return pl.lit(_START, pl.Datetime("us", "UTC")) + (seconds * 1e6).cast(pl.Int64).cast(pl.Duration("us"))


def _plant_direction(jobs: pl.DataFrame, direction: str, generator: np.random.Generator) -> pl.DataFrame:
    """Draw the volume of each job in one direction, and the period of those that have one."""
    count, node_count = jobs.height, jobs["node_count"].to_numpy()
    labels, duration_s = jobs[direction], jobs["duration_s"].to_numpy()
    volume = _BYTES_PER_NODE * np.exp(_BYTES_SPREAD * generator.standard_normal(count))
    volume = np.where(labels == "NO_USAGE", generator.uniform(0.0, 0.5e6, count), np.maximum(volume, _LEAST_BYTES))
    period_s = _draw_periods(direction, duration_s, labels.is_in(EVEN).to_numpy(), generator)
    return jobs.with_columns(
        direction=pl.lit(direction),
        label=labels,
        period_s=pl.Series(period_s).fill_nan(None),
        bytes=pl.Series(volume * node_count),
    )


def _draw_periods(direction: str, duration_s: Reals, is_even: Ints, generator: np.random.Generator) -> Reals:
    """Draw periods of jobs with I/O over the whole run; NaN without one. Long jobs have one twice as often."""
    count = len(duration_s)
    peaks_s = np.array(PEAKS_S[direction])
    period_s = np.where(
        generator.random(count) < _PEAK_RATIO,
        peaks_s[generator.integers(0, len(peaks_s), count)],
        np.exp(generator.uniform(np.log(120.0), np.log(10_800.0), count)),
    )
    can_repeat, is_long = is_even & (duration_s >= _MIN_CYCLES * period_s), duration_s > _LONG_S
    periodic_count = PERIODIC_RATIOS[direction] * count
    # the share of long jobs is a multiple of the share of all jobs; there may be fewer that can repeat
    long_count = min(_LONG_FACTOR * periodic_count * is_long.mean(), int((can_repeat & is_long).sum()))
    is_periodic = np.zeros(count, dtype=np.bool_)
    for is_in_group, number in ((is_long, long_count), (~is_long, periodic_count - long_count)):
        eligible = np.flatnonzero(is_in_group & can_repeat)
        is_periodic[generator.permutation(eligible)[: round(number)]] = True
    return np.where(is_periodic, period_s, np.nan)


# ---- measurements


def draw_rates(planted: pl.DataFrame, generator: np.random.Generator) -> tuple[Ragged, Reals]:
    """Draw the rate of each job in each interval [B/s], NaN where lost, and the starts of its grid in the run [s]."""
    duration_s = planted["duration_s"].to_numpy()
    lead_s = generator.uniform(0.0, INTERVAL_S, planted.height)
    counts = np.ceil((duration_s + lead_s) / INTERVAL_S).astype(np.int64)
    offsets = offsets_of(counts)
    owner = np.repeat(np.arange(planted.height), counts)
    begin_s = (np.arange(offsets[-1]) - offsets[:-1][owner]) * INTERVAL_S - lead_s[owner]
    first_s, last_s = np.maximum(begin_s, 0.0), np.minimum(begin_s + INTERVAL_S, duration_s[owner])
    quarter = np.clip((4.0 * (first_s + last_s) / 2.0 / duration_s[owner]).astype(np.int64), 0, 3)
    period_s = planted["period_s"].fill_null(np.nan).to_numpy()
    activity = _active_times(first_s, last_s, owner, period_s, generator)
    activity *= generator.gamma(_RATE_SHAPE, 1.0 / _RATE_SHAPE, len(activity))
    cell = 4 * owner + quarter
    sums = np.bincount(cell, activity, 4 * planted.height).reshape(-1, 4)
    shares = np.array([_QUARTERS[label] for label in planted["label"]])
    shares = shares * np.exp(_QUARTER_SPREAD * generator.standard_normal(shares.shape)) * (sums > 0)
    volumes = planted["bytes"].to_numpy()[:, None] * shares / shares.sum(axis=1, keepdims=True)
    scale = np.divide(volumes, sums, out=np.zeros_like(sums), where=sums > 0)
    rates = activity * scale.ravel()[cell] / INTERVAL_S
    rates[generator.random(len(rates)) < _LOST_RATIO] = np.nan
    return Ragged(rates, offsets), -lead_s


def _active_times(first_s: Reals, last_s: Reals, owner: Ints, period_s: Reals, generator: np.random.Generator) -> Reals:
    """Return the time with I/O in each interval [s]: within bursts of periodic jobs, else the whole interval."""
    period, phase = period_s[owner], generator.random(len(period_s))[owner]
    width_s = np.maximum(_BURST_RATIO * period, 1.5 * INTERVAL_S)
    cycle = np.floor(np.nan_to_num((first_s + last_s) / 2.0 / np.where(period > 0, period, 1.0) - phase))
    # one deviation per job and cycle
    keys = np.stack([owner, cycle.astype(np.int64)])
    _, inverse = np.unique(keys, axis=1, return_inverse=True)
    deviation = generator.standard_normal(int(inverse.max(initial=0)) + 1)[inverse.ravel()]
    middle_s = (cycle + phase + 0.5 + _JITTER_RATIO * deviation) * period
    overlap = np.minimum(last_s, middle_s + width_s / 2) - np.maximum(first_s, middle_s - width_s / 2)
    return np.where(np.isnan(period), last_s - first_s, np.clip(overlap, 0.0, None))


def _measure_direction(planted: pl.DataFrame, rates: Ragged, grid_start_s: Reals) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Classify the jobs of one direction, and search their periods: rows of `classes` and of `periods`."""
    count = planted.height
    intervals, duration_s = np.full(count, INTERVAL_S), planted["duration_s"].to_numpy()
    sections = classes.grid_sections(rates.values, rates.offsets, grid_start_s, intervals, np.zeros(count), duration_s)
    classified = classes.classify(sections, planted["node_count"].to_numpy().astype(float))
    subject = planted.select(
        "cluster",
        "direction",
        "started_at",
        "ended_on",
        "node_count",
        "duration_s",
        subject_kind=pl.lit("job"),
        subject_id="job_id",
        filesystem=pl.lit(_FILESYSTEM),
        metric=pl.lit("bytes"),
        basis=pl.lit("counted"),
    )
    class_rows = subject.hstack(classified.select("outcome", "label", "section_bytes", "cv", "volume_bytes"))
    params = get_params(Settings().periods, METHODS)
    found = search.find_periods(rates, 1.0 / intervals, grid_start_s, params)
    period_rows = [
        subject.with_columns(
            is_default=pl.lit(value=True),
            method=pl.lit(answer.method),
            outcome=pl.Series(answer.detections.outcome.tolist(), dtype=pl.String),
            period_s=pl.Series(answer.detections.period_s).fill_nan(None),
        )
        for answer in found
    ]
    return class_rows, pl.concat(period_rows)


# ---- statistics


def _query(rows: Mapping[str, pl.DataFrame], query: Query) -> Population:
    """Query the population of tables with these rows; all other tables are empty."""
    import duckdb

    with duckdb.connect() as connection:
        for table in TABLES:
            connection.register(table.name, _fill_table(table, rows.get(table.name)).to_arrow())
        return query_population(connection, query)


def _fill_table(table: Table, rows: pl.DataFrame | None) -> pl.DataFrame:
    if rows is None:
        return frames.empty(table)
    known = rows.select(name for name in table.column_names if name in rows.columns)
    return frames.add_missing_columns(known, table).cast(frames.schema(table))


def measure(year: Year) -> dict[str, dict[str, float | int]]:
    """Measure how far the recovered statistics are from the planted ones, by table and figure of the paper."""
    runs, planted = year.population.runs, year.planted
    keys = ["job_id", "direction"]
    labels = runs.select(job_id="subject_id", direction="direction", recovered="label")
    joined = planted.join(labels, on=keys)
    measures: dict[str, dict[str, float | int]] = {
        "classes": {"right_ratio": float(joined.select((pl.col("recovered") == pl.col("label")).mean()).item())},
        "table_1": {"job_count": planted["job_id"].n_unique(), "largest_error": _compare_cells(year)},
        "repeats": _compare_repeats(year),
        "figure_2": {"largest_error": _compare_volumes(year)},
        "figure_3": {"largest_error": _compare_hours(year)},
        "long_jobs": _compare_durations(year),
    }
    for direction, figure in (("write", "figure_4"), ("read", "figure_5")):
        shares = list_shares(year).filter(direction=direction)
        own = year.planted.filter(direction=direction)
        measures[f"table_2_{direction}"] = {
            "largest_error": float((shares["recovered"] - shares["planted"]).abs().max()),  # type: ignore[arg-type]
            "periodic_ratio": _periodic_ratio(year.population, direction),
            "published_periodic_ratio": _periodic_ratio(year.published, direction),
            "planted_periodic_ratio": float(own["period_s"].is_not_null().mean()),  # type: ignore[arg-type]
        }
        measures[figure] = {
            "peak_ratio": _peak_ratio(year.population.periods(direction), direction),
            "planted_peak_ratio": _peak_ratio(own["period_s"].drop_nulls(), direction),
        }
    return measures


def list_shares(year: Year) -> pl.DataFrame:
    """Return the planted and the recovered share of each class, by direction, in the order of Table 2."""
    recovered = year.population.shares().select("direction", "label", recovered="run_ratio")
    counts = year.planted.group_by("direction", "label").len()
    planted = counts.with_columns(planted=pl.col("len") / pl.col("len").sum().over("direction")).drop("len")
    order = pl.col("label").cast(pl.Enum(LABELS))
    return (
        planted.join(recovered, on=["direction", "label"], how="left")
        .with_columns(pl.col("recovered").fill_null(0.0))
        .sort(pl.col("direction") == "write", order)
    )


def list_cells(year: Year) -> pl.DataFrame:
    """Count the jobs of each cell of Table 1: read, write, planted, recovered."""
    wide = year.planted.pivot("direction", index="job_id", values="label")
    planted = wide.group_by("write", "read").agg(planted=pl.len())
    recovered = year.population.labels().rename({"run_count": "recovered"})
    joined = planted.join(recovered, on=["write", "read"], how="full", coalesce=True)
    return joined.with_columns(pl.col("planted", "recovered").fill_null(0).cast(pl.Int64)).sort(
        pl.col("read").cast(pl.Enum(LABELS)), pl.col("write").cast(pl.Enum(LABELS))
    )


def list_periodic(year: Year) -> pl.DataFrame:
    """Return planted and recovered shares of periodic jobs, by direction and method."""
    return pl.DataFrame(
        {
            "direction": direction,
            "planted": year.planted.filter(direction=direction)["period_s"].is_not_null().mean(),
            "recovered": _periodic_ratio(year.population, direction),
            "published": _periodic_ratio(year.published, direction),
        }
        for direction in ("read", "write")
    )


def _periodic_ratio(population: Population, direction: str) -> float:
    return float(population.shares().filter(direction=direction)["periodic_ratio"][0])


def _peak_ratio(period_s: pl.Series, direction: str) -> float:
    """Return the share of periods that are near one of the planted peaks."""
    distance = np.abs(period_s.to_numpy()[:, None] / np.array(PEAKS_S[direction]) - 1.0)
    return float((distance.min(axis=1) < NEAR_RATIO).mean()) if len(distance) else 0.0


def _compare_cells(year: Year) -> float:
    cells = list_cells(year)
    errors = (cells["recovered"] - cells["planted"]).abs() / cells["planted"].sum()
    return float(errors.max())  # type: ignore[arg-type]


def _compare_repeats(year: Year) -> dict[str, float | int]:
    """Compare the runs of each configuration of the users with the largest jobs, as in IOSI's Figure 2."""
    keys = ["user", "application", "node_count"]
    planted = year.planted.filter(direction="write").group_by(keys).agg(planted=pl.len())
    joined = year.population.repeats.join(planted, on=keys, how="left")
    wrong = joined.filter(pl.col("run_count") != pl.col("planted").fill_null(0))
    return {"configuration_count": joined.height, "wrong_count": wrong.height}


def _compare_volumes(year: Year) -> float:
    """Return the largest difference between the bars of Figure 2, by powers of two, as a share of all jobs."""
    recovered = year.population.runs.filter(direction="read")["bytes"].fill_null(0.0)
    bars = [
        np.bincount(np.log2(np.maximum(volumes.to_numpy(), 1.0)).astype(np.int64), minlength=64)
        for volumes in (recovered, year.planted.filter(direction="read")["bytes"])
    ]
    return float(np.abs(bars[0] - bars[1]).max() / len(recovered))


def _compare_hours(year: Year) -> float:
    planted = (
        year.planted.filter(direction="write").group_by(name="application").agg(planted=pl.col("node_hours").sum())
    )
    joined = planted.join(year.population.groups(), on="name")
    return float((joined["node_hours"] / joined["planted"] - 1.0).abs().max())  # type: ignore[arg-type]


def _compare_durations(year: Year) -> dict[str, float | int]:
    """Return the share of periodic writes of long jobs, relative to that of all jobs: recovered and planted."""
    rows = year.durations.runs.filter(direction="write")
    is_even = pl.col("period_s").is_not_null() & pl.col("label").is_in(EVEN)
    recovered = rows.filter(name="over 12 h").select(is_even.mean()).item() / rows.select(is_even.mean()).item()
    own = year.planted.filter(direction="write")
    has_period = pl.col("period_s").is_not_null()
    is_long = pl.col("duration_s") > _LONG_S
    planted = own.filter(is_long).select(has_period.mean()).item() / own.select(has_period.mean()).item()
    return {"ratio": float(recovered), "planted_ratio": float(planted)}
