"""Query the report's data on applications: signatures in bytes and operations, runs, checks and contention."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING

import polars as pl

from iosig.answers.report.samples import downsample
from iosig.answers.wall import population_map
from iosig.reports.site.applications import ApplicationFrames
from iosig.warehouse.releases.reading import open_release
from iosig.warehouse.releases.releases import Release
from iosig.warehouse.store.store import Store

if TYPE_CHECKING:
    import duckdb

#: maximum number of releases in the history of signatures, the newest ones
_MAX_RELEASES = 12
_MAX_STEPS = 240
_RUN = ["application_id", "filesystem", "direction", "started_at", "job_id", "cluster"]


#: tables of operations, of which `open_release` selects the rows
OPERATION_TABLES = "applications jobs classes periods signatures signature_points"
#: name of the temporary relation with the selected applications
_CHOSEN = "chosen_applications"


def read_signatures(connection: duckdb.DuckDBPyConnection) -> pl.DataFrame:
    """Query the default signatures of all applications, with class and period."""
    rows: pl.DataFrame = connection.sql(_SIGNATURES).pl()
    return rows


@dataclass(frozen=True, slots=True)
class PageInputs:
    """Inputs of an application's page: a hash over its rows, and the days of its samples."""

    rows: str
    days: frozenset[date]


def fingerprint_applications(connection: duckdb.DuckDBPyConnection) -> dict[str, PageInputs]:
    """Hash the inputs of each application's page."""
    hashes = connection.sql(_MADE_OF).fetchall()
    return {name: PageInputs(f"{rows} {count}", frozenset(days or ())) for name, rows, count, days in hashes}


def fingerprint_operations(connection: duckdb.DuckDBPyConnection) -> dict[str, str]:
    """Hash the signatures of operations of each application; connection: a release with the rows of operations."""
    return dict(connection.sql(_OPERATIONS_MADE_OF).fetchall())


def read_operations(connection: duckdb.DuckDBPyConnection, chosen: Sequence[str]) -> pl.DataFrame:
    """Read the signatures of operations of some applications, with curve, class and period.

    connection: a release with the rows of operations, so that amounts are in the columns of bytes.
    """
    with _choose(connection, chosen):
        rows: pl.DataFrame = connection.sql(_OPERATIONS).pl()
    return rows


@contextmanager
def _choose(connection: duckdb.DuckDBPyConnection, chosen: Sequence[str]) -> Iterator[None]:
    """Register the selected applications."""
    connection.register(_CHOSEN, pl.DataFrame({"application_id": pl.Series(chosen, dtype=pl.String)}).to_arrow())
    try:
        yield
    finally:
        connection.unregister(_CHOSEN)


def read(
    connection: duckdb.DuckDBPyConnection, signatures: pl.DataFrame, operations: pl.DataFrame, chosen: Sequence[str]
) -> ApplicationFrames:
    """Read the frames of some applications.

    signatures, operations: the results of `read_signatures` and `read_operations`.
    """
    with _choose(connection, chosen):
        return ApplicationFrames(
            signatures=signatures.filter(pl.col("application_id").is_in(list(chosen))),
            curves=connection.sql(_CURVES).pl(),
            bursts=connection.sql(_BURSTS).pl(),
            runs=_runs(connection),
            operations=operations,
            checks=connection.sql(_CHECKS).pl(),
            contention=connection.sql(_CHOSEN_CONTENTION).pl(),
            looked=connection.sql(_CONTENTION_TOTALS).pl(),
        )


def _runs(connection: duckdb.DuckDBPyConnection) -> pl.DataFrame:
    """Query the latest runs of each sample set, with downsampled samples."""
    samples = downsample(connection, _SAMPLES, _MAX_STEPS)
    latest: pl.DataFrame = connection.sql(_CHOSEN_LATEST).pl().drop("ended_on")
    return latest.join(samples, on=_RUN, how="left").sort(_RUN)


def locate_on_map(connection: duckdb.DuckDBPyConnection) -> pl.DataFrame:
    """Return the coordinates of applications on the population map."""
    view = population_map.build_view(connection, "")
    rows = [
        (application.name, application.month_bytes, application.burstiness, application.run_count, application.label)
        for application in view.applications
    ]
    schema = {
        "application_id": pl.String(),
        "month_bytes": pl.Float64(),
        "burstiness": pl.Float64(),
        "run_count": pl.Int64(),
        "label": pl.String(),
    }
    return pl.DataFrame(rows, schema=schema, orient="row")


def read_history(store: Store, releases: Sequence[Release]) -> pl.DataFrame:
    """Read the default signatures of the newest releases, oldest release first.

    Releases that share a snapshot of `signatures` are read once.
    """
    parts: list[pl.DataFrame] = []
    frames: dict[int | None, pl.DataFrame] = {}
    for release in releases[-_MAX_RELEASES:]:
        snapshot = release.snapshots.get("signatures")
        if snapshot not in frames:
            with open_release(store, release, "signatures") as connection:
                frames[snapshot] = connection.sql(_HISTORY).pl()
        parts.append(frames[snapshot].with_columns(release_id=pl.lit(release.release_id)))
    return pl.concat(parts)


_SIGNATURES = """
    with month as (
        select application_id, count(*) as month_run_count
        from jobs
        where is_application_run and ended_on > (select max(ended_on) from jobs) - 30
        group by all
    ),

    described as (
        select application_id, user, application, node_count, month_run_count
        from applications
        left join month using (application_id)
    ),

    labels as (
        select subject_id as application_id, filesystem, direction, label
        from classes
        where subject_kind = 'application'
    ),

    periodic as (
        select subject_id as application_id, filesystem, direction, period_s, false_alarm_probability,
            burst_width_s, bytes_per_period
        from periods
        where subject_kind = 'application' and is_default and outcome = 'periodic'
    )

    select
        signatures.*,
        described.user,
        described.application,
        described.node_count,
        described.month_run_count,
        labels.label,
        periodic.period_s,
        periodic.false_alarm_probability,
        periodic.burst_width_s,
        periodic.bytes_per_period
    from signatures
    left join described using (application_id)
    left join labels using (application_id, filesystem, direction)
    left join periodic using (application_id, filesystem, direction)
    where signatures.is_default
    order by signatures.volume_bytes desc nulls last, application_id, filesystem, direction
"""

#: the curve in at most 600 steps as integer multiples of `scale_bytes_per_s`, and in at most 40 as base-36 digits
_CURVES = """
    with chosen as (
        select application_id, filesystem, direction, method,
            greatest(ceil(duration_s / 600), 1) as step_s,
            if(peak_bytes_per_s > 0, peak_bytes_per_s / 9999, 1) as scale_bytes_per_s
        from signatures
        semi join chosen_applications using (application_id)
        where is_default and outcome = 'extracted'
    ),

    binned as (
        select application_id, filesystem, direction, step_s, scale_bytes_per_s,
            floor(offset_s / step_s) as bin,
            avg(bytes_per_s) as rate,
            avg(low_bytes_per_s) as low,
            avg(high_bytes_per_s) as high
        from signature_points
        inner join chosen using (application_id, filesystem, direction, method)
        group by all
    ),

    curves as (
        select application_id, filesystem, direction, step_s, scale_bytes_per_s,
            list(round(rate / scale_bytes_per_s)::int order by bin) as rates,
            list(round(low / scale_bytes_per_s)::int order by bin) as lows,
            list(round(high / scale_bytes_per_s)::int order by bin) as highs
        from binned
        group by all
    ),

    sparks as (
        select application_id, filesystem, direction, least(len(rates), 40) as spark_count,
            greatest(list_max(rates), 1) as most
        from curves
    )

    select curves.*,
        array_to_string(
            list_transform(
                range(spark_count),
                lambda bin: substr(
                    '0123456789abcdefghijklmnopqrstuvwxyz',
                    1 + round(
                        35 * list_max(
                            rates[1 + bin * len(rates) // spark_count:(bin + 1) * len(rates) // spark_count]
                        ) / most
                    )::int,
                    1
                )
            ),
            ''
        ) as spark
    from curves
    inner join sparks using (application_id, filesystem, direction)
    order by application_id, filesystem, direction
"""

#: signatures of operations, with their curves
_OPERATIONS = f"""
    with signed as ({_SIGNATURES}),
    curves as ({_CURVES})

    select signed.application_id, signed.filesystem, signed.direction, signed.outcome, signed.sample_count,
        signed.used_sample_count, signed.volume_bytes, signed.peak_bytes_per_s, signed.expected_correlation,
        signed.label, signed.period_s, signed.false_alarm_probability,
        curves.step_s, curves.scale_bytes_per_s, curves.rates, curves.lows, curves.highs
    from signed
    semi join chosen_applications using (application_id)
    left join curves using (application_id, filesystem, direction)
    order by signed.application_id, signed.filesystem, signed.direction
"""

#: hash over the signatures of operations
_OPERATIONS_MADE_OF = f"""
    with signed as ({_SIGNATURES}),

    parts as (
        select application_id, hash(signed) as part from signed
        union all
        select application_id, sum(hash(signature_points)) as part from signature_points group by application_id
    )

    select application_id, sum(part)::varchar from parts group by application_id
"""

_BURSTS = """
    select application_id, filesystem, direction, burst, start_s, peak_s, end_s, signature_bursts.volume_bytes,
        support_ratio
    from signature_bursts
    semi join chosen_applications using (application_id)
    inner join signatures using (application_id, filesystem, direction, method)
    where signatures.is_default
    order by application_id, filesystem, direction, burst
"""

#: the latest 12 runs of each sample set
_LATEST = """
    select application_id, filesystem, direction, cluster, job_id, started_at, ended_on, duration_s, sample_bytes,
        missing_ratio, source
    from sample_sets
    qualify row_number() over (
        partition by application_id, filesystem, direction order by started_at desc, job_id, cluster
    ) <= 12
"""

_CHOSEN_LATEST = f"""
    with latest as ({_LATEST})

    select *
    from latest
    semi join chosen_applications using (application_id)
"""

#: samples of these runs, from the source of their sample set
_SAMPLES = f"""
    with latest as ({_CHOSEN_LATEST})

    select application_id, filesystem, direction, cluster, job_id, started_at,
        epoch(run_samples.grid_started_at) - epoch(started_at) as start_s,
        run_samples.interval_s,
        run_samples.sample_bytes_per_s as rates
    from latest
    inner join run_samples using (cluster, job_id, started_at, ended_on, filesystem, direction)
    where run_samples.source = coalesce(latest.source, 'server')
"""

_CHECKS = """
    select application_id, filesystem, direction, trace_id, is_training_run, cross_correlation, correlation,
        signature_checks.volume_bytes, traced_bytes, missed_burst_count, false_burst_count
    from signature_checks
    semi join chosen_applications using (application_id)
    inner join signatures using (application_id, filesystem, direction, method)
    where signatures.is_default
    order by application_id, filesystem, direction, trace_id
"""

#: contention pairs: top interferers of its slowed bursts (NULL: unattributed), and applications with slowed bursts that
#: had it as top interferer
_CONTENTION = """
    with pairs as (
        select application_id, filesystem, cluster, job_id, started_at, delay_s,
            if(coalesce(top_interferer_bytes, 0) >= coalesce(unattributed_bytes, 0), top_interferer_application_id,
            null) as first_id
        from slowdowns
        where outcome = 'slowed'
    ),

    sides as (
        select application_id, 'slowed by' as role, first_id as other_application_id, * exclude (application_id,
            first_id)
        from pairs
        union all
        select first_id, 'slows' as role, application_id, * exclude (application_id, first_id)
        from pairs
        where first_id is not null
    )

    select application_id, role, other_application_id, filesystem,
        sum(delay_s) as delay_s,
        count(distinct (cluster, job_id, started_at)) as run_count,
        count(*) as burst_count
    from sides
    group by application_id, role, other_application_id, filesystem
    qualify row_number() over (
        partition by application_id, role order by sum(delay_s) desc, other_application_id, filesystem
    ) <= 10
"""

_CHOSEN_CONTENTION = f"""
    with contention as ({_CONTENTION})

    select *
    from contention
    semi join chosen_applications using (application_id)
    order by application_id, role, delay_s desc, other_application_id, filesystem
"""

#: number of runs with found bursts, and number of slowed runs
_CONTENTION_TOTALS = """
    select application_id,
        count(distinct (cluster, job_id, started_at)) as looked_run_count,
        count(distinct if(outcome = 'slowed', (cluster, job_id, started_at), null)) as slowed_run_count
    from slowdowns
    where outcome != 'not_found'
    group by application_id
"""

#: hash over all rows of an application's page except samples, which are as large as everything else
_MADE_OF = f"""
    with signed as ({_SIGNATURES}),
    latest as ({_LATEST}),
    chosen as (select application_id, filesystem, direction, method from signatures where is_default),

    points as (
        select * from signature_points semi join chosen using (application_id, filesystem, direction, method)
    ),

    bursts as (
        select * from signature_bursts semi join chosen using (application_id, filesystem, direction, method)
    ),

    checks as (
        select * from signature_checks semi join chosen using (application_id, filesystem, direction, method)
    ),

    parts as (
        select application_id, hash(signed) as part, null::date as ended_on from signed
        union all
        select application_id, hash(latest) as part, ended_on from latest
        union all
        select application_id, sum(hash(points)) as part, null from points group by application_id
        union all
        select application_id, hash(bursts, 'bursts') as part, null from bursts
        union all
        select application_id, hash(checks, 'checks') as part, null from checks
        union all
        select application_id, hash(contention) as part, null from ({_CONTENTION}) as contention
        union all
        select application_id, hash(looked, 'looked') as part, null from ({_CONTENTION_TOTALS}) as looked
    )

    select application_id, sum(part)::varchar as rows, count(*) as part_count,
        list(distinct ended_on) filter (ended_on is not null) as days
    from parts
    semi join signed using (application_id)
    group by application_id
    order by application_id
"""

_HISTORY = """
    select application_id, filesystem, direction, outcome, volume_bytes, burst_count, expected_correlation
    from signatures
    where is_default
    order by application_id, filesystem, direction
"""
