"""What a release holds, for people: counts, samples, classes, checks, and where it lies."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import click

from flows.command.printing import bytes_text, say, show
from warehouse.releases.reading import opened
from warehouse.releases.releases import Release, published
from warehouse.store.store import DEFAULT_ROOT, Store

if TYPE_CHECKING:
    import duckdb

_TOP = 20


def show_summary(store: Store, release: Release) -> None:
    """Print a release's tables, applications, signatures, classes, periods and failed checks, and how to go on."""
    with opened(store, release) as connection:
        _show_tables(connection)
        _show_applications(connection)
        _show_signatures(connection)
        _show_classes(connection)
        _show_periods(connection)
        _show_inference(connection)
        _show_checks(connection)
        notes = [*extrapolations(connection), *missing_inputs(connection)]
    for note in notes:
        say(f"- {note}")
    say(f"Release {release.release_id} ({release.verdict}) in {store.name}")
    click.echo(f"Checks: {store.data_docs / 'index.html'}")
    elsewhere = "" if store.root == DEFAULT_ROOT else f" --warehouse {shlex.quote(str(store.root))}"
    say(f'Query it: iosig{elsewhere} sql "select * from job_io limit 5"')


def _show_tables(connection: duckdb.DuckDBPyConnection) -> None:
    rows = []
    for table in published():
        (count,) = connection.sql(f'select count(*) from "{table.name}"').fetchall()[0]
        rows.append((table.name, count, table.grain))
    show("Tables", ("table", "rows", "what a row is"), rows)


def _show_applications(connection: duckdb.DuckDBPyConnection) -> None:
    query = """
        select
            applications.application_id,
            applications.sample_count,
            job_io.direction,
            median(job_io.volume_bytes) as volume_bytes,
            max(job_io.peak_bytes_per_s) as peak_bytes_per_s
        from applications
        inner join jobs
            on applications.user = jobs.user
            and applications.application = jobs.application
            and applications.node_count = jobs.node_count
        inner join job_io using (cluster, job_id, started_at)
        where job_io.outcome = 'measured'
        group by all
        order by applications.sample_count desc, applications.application_id, job_io.direction
        limit $top
    """
    rows = connection.sql(query, params={"top": _TOP}).fetchall()
    if rows:
        shown = [
            (name, count, way, bytes_text(volume), f"{bytes_text(peak)}/s") for name, count, way, volume, peak in rows
        ]
        columns = ("application", "samples", "direction", "median volume", "peak")
        show("Sample sets (server-side samples hold other jobs' traffic too)", columns, shown)


def _show_signatures(connection: duckdb.DuckDBPyConnection) -> None:
    query = """
        select
            signatures.application_id,
            signatures.direction,
            format('{} of {}', signatures.used_sample_count, signatures.sample_count) as used,
            signatures.duration_s,
            signatures.volume_bytes,
            signatures.peak_bytes_per_s,
            signatures.burst_count,
            periods.period_s,
            if(signatures.is_changed, 'changed', null) as change
        from signatures
        left join periods
            on periods.subject_kind = 'application'
            and periods.is_default
            and signatures.application_id = periods.subject_id
            and signatures.filesystem = periods.filesystem
            and signatures.direction = periods.direction
        where signatures.is_default and signatures.outcome = 'extracted'
        order by signatures.volume_bytes desc, signatures.application_id, signatures.direction
        limit $top
    """
    rows = [
        (name, way, used, lasting, bytes_text(volume), f"{bytes_text(peak)}/s", bursts, period, change)
        for name, way, used, lasting, volume, peak, bursts, period, change in connection.sql(
            query, params={"top": _TOP}
        ).fetchall()
    ]
    if rows:
        columns = (
            "application",
            "direction",
            "samples used",
            "run_s",
            "volume",
            "peak",
            "bursts",
            "period_s",
            "change",
        )
        title = "Signatures: what applications do when they are alone"
        show(title, columns, rows, last=("samples used", "run_s", "peak"))


def _show_classes(connection: duckdb.DuckDBPyConnection) -> None:
    query = """
        select
            subject_kind,
            basis,
            direction,
            coalesce(label, outcome) as verdict,
            count(*) as subject_count
        from classes
        group by all
        order by subject_kind, basis, direction, subject_count desc, verdict
    """
    rows = connection.sql(query).fetchall()
    if rows:
        show("Classes", ("subject", "basis", "direction", "class", "subjects"), rows)


def _show_periods(connection: duckdb.DuckDBPyConnection) -> None:
    query = """
        select
            subject_kind,
            basis,
            direction,
            count(*) filter (outcome in ('periodic', 'aperiodic')) as judged_count,
            count(*) filter (outcome = 'periodic') as periodic_count,
            median(period_s) as period_s,
            median(periodicity_score) as periodicity_score
        from periods
        where is_default
        group by all
        having judged_count > 0
        order by subject_kind, basis, direction
    """
    rows = connection.sql(query).fetchall()
    if rows:
        columns = ("subject", "basis", "direction", "analyzed", "periodic", "median period_s", "median score")
        show("Periods (false-alarm probability below the threshold)", columns, rows)


def _show_inference(connection: duckdb.DuckDBPyConnection) -> None:
    """Print how often inferred classes and periods agree with those of the runs' own bytes."""
    from flows.report.quality import inference_agreement
    from reports.texts import ratio_text

    rows = [
        (
            row["basis"],
            "yes" if row["is_held_out"] else "no",
            row["class_count"],
            "-" if row["class_agreement_ratio"] is None else ratio_text(row["class_agreement_ratio"]),
            row["period_count"],
            "-" if row["period_agreement_ratio"] is None else ratio_text(row["period_agreement_ratio"]),
        )
        for row in inference_agreement(connection).to_dicts()
    ]
    if rows:
        columns = ("measured by", "held out", "classes", "agree", "periods", "agree")
        show("Inferred classes and periods against measured ones", columns, rows)


def _show_checks(connection: duckdb.DuckDBPyConnection) -> None:
    """Print what happened where a check of anything in the release does not hold, whichever run made its day."""
    rows = warnings(connection)
    if rows:
        show("Checks that do not hold", ("severity", "what happened", "expectation"), rows)


def warnings(connection: duckdb.DuckDBPyConnection) -> list[tuple[str, str, str]]:
    """Return what does not hold, but for notes: how severe it is, what happened, and which expectation says so."""
    import json

    from expectations import sentences, suites

    query = """
        select table_name, expectation, severity, unexpected_count, observed
        from quality
        where not success and severity <> 'info'
        order by severity, table_name, expectation
    """
    return [
        (severity, sentences.happened(suites.rule(table, name), count, json.loads(observed)), f"{table}.{name}")
        for table, name, severity, count, observed in connection.sql(query).fetchall()
    ]


def missing_inputs(connection: duckdb.DuckDBPyConnection) -> list[str]:
    """Return, as sentences, what the release could not hold for want of an input or a setting."""
    counts = {
        name: connection.sql(f'select count(*) from "{name}"').fetchall()[0][0]
        for name in ("jobs", "poll_days", "series_intervals", "rejects")
    }
    notes = []
    if not counts["jobs"]:
        notes.append("No job log is landed: there are no samples, no applications and no classes of jobs.")
    if not counts["poll_days"]:
        notes.append("No polls are landed: nothing is known of what storage moved while jobs ran.")
    if counts["jobs"] and counts["poll_days"]:
        notes += _unmatched_filesystems(connection)
    if counts["rejects"]:
        notes.append(f"{counts['rejects']:,} input rows or files were refused; iosig sql 'from rejects' lists them.")
    return notes


def extrapolations(connection: duckdb.DuckDBPyConnection) -> list[str]:
    """Return, as a sentence, how many extrapolations there are and what became of them; none where there are none."""
    query = "select count(*), count(*) filter (outcome = 'extrapolated') from extrapolations"
    ((count, done),) = connection.sql(query).fetchall()
    told = f"{done:,} of {count:,} extrapolations gave a trace; iosig sql 'from extrapolations' lists them."
    return [told] if count else []


def _unmatched_filesystems(connection: duckdb.DuckDBPyConnection) -> list[str]:
    query = """
        select filesystem, count(*)
        from jobs
        where is_application_run
            and filesystem is not null
            and filesystem not in (select distinct filesystem from poll_days)
        group by all
        order by filesystem
    """
    known = connection.sql("select string_agg(distinct filesystem, ', ') from poll_days").fetchall()[0][0]
    return [
        f"{count:,} runs used file system {name}, of which no polls are landed (landed: {known}); "
        f"if it has another name there, say so in the settings under [filesystems]."
        for name, count in connection.sql(query).fetchall()
    ]
