"""Print a readable summary of a release: applications, bytes, periods, warnings, and next commands."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from iosig.answers.time_shifts import check_release
from iosig.cli.hints import command
from iosig.cli.printing import bytes_text, format_title, say, show
from iosig.reports.texts import duration_text, format_count
from iosig.settings.model import Settings
from iosig.warehouse.releases import holds
from iosig.warehouse.releases.reading import open_release
from iosig.warehouse.releases.releases import Release, list_published_tables
from iosig.warehouse.store.store import Store

if TYPE_CHECKING:
    import duckdb

_TOP, _MAX_WARNINGS = 20, 8


def show_summary(store: Store, release: Release, settings: Settings, *, is_verbose: bool = False) -> None:
    """Print the contents of a release, its warnings, and next commands; is_verbose: also its tables and classes."""
    with open_release(store, release) as connection:
        if is_verbose:
            _show_tables(connection)
            _show_classes(connection)
            _show_periods(connection)
            _show_inference(connection)
        say(_counts(connection))
        _show_applications(connection)
        notes = [*extrapolations(connection), *missing_inputs(connection)]
        failed = [f"{happened} ({expectation})" for _, happened, expectation in warnings(connection)]
    shifts = check_release(store, settings, release)
    hold = holds.in_force(store)
    for text in _few([*([hold.sentence] if hold else []), *shifts, *failed, *notes]):
        say(f"! {text}", fg="yellow")
    say(f"Release {release.release_id} ({release.verdict}) in {store.name}")
    click.echo(f"Checks: {store.data_docs / 'index.html'}")
    click.echo("Bytes of runs: " + command('sql "from job_io order by estimated_bytes desc nulls last limit 10"'))
    click.echo("Signatures: " + command('sql "from signatures where is_default"'))
    click.echo("Report: " + command("report --output report"))


def _few(texts: list[str]) -> list[str]:
    """Return the first warnings, and a reference to the others."""
    more = len(texts) - _MAX_WARNINGS
    if more <= 0:
        return texts
    return [*texts[:_MAX_WARNINGS], f'{more:,} more: `iosig sql "from quality where not success"` lists all.']


def _show_tables(connection: duckdb.DuckDBPyConnection) -> None:
    rows = []
    for table in list_published_tables():
        (count,) = connection.sql(f'select count(*) from "{table.name}"').fetchall()[0]
        rows.append((table.name, count, table.grain))
    show("Tables", ("table", "rows", "one row per"), rows)


def _counts(connection: duckdb.DuckDBPyConnection) -> str:
    """Summarize the release's contents in a sentence."""
    query = """
        select
            (select count(*) filter (is_application_run) from jobs) as run_count,
            (select count(*) from applications) as application_count,
            (select count(distinct application_id) from signatures where is_default and outcome = 'extracted')
                as signature_count,
            (select sum(coalesce(read_bytes, 0) + coalesce(written_bytes, 0)) from polls_daily) as moved_bytes,
            (select count(distinct filesystem) from polls_daily) as filesystem_count,
            (select count(distinct polled_on) from polls_daily) as day_count
    """
    runs, applications, signatures, moved_bytes, filesystems, days = connection.sql(query).fetchall()[0]
    polled = (
        f"; {format_count(filesystems, 'file system')} moved {bytes_text(moved_bytes)} on {format_count(days, 'day')}"
        if days
        else ""
    )
    return (
        f"Found {format_count(runs, 'run')} of {format_count(applications, 'application')}, {signatures:,} with a "
        f"signature{polled}."
    )


def _show_applications(connection: duckdb.DuckDBPyConnection) -> None:
    """Print the largest signatures and their reliability."""
    query = """
        select
            signatures.application_id,
            signatures.direction,
            signatures.sample_count,
            signatures.volume_bytes,
            periods.period_s,
            signatures.expected_correlation,
            signatures.outcome
        from signatures
        left join periods
            on periods.subject_kind = 'application'
            and periods.is_default
            and signatures.application_id = periods.subject_id
            and signatures.filesystem = periods.filesystem
            and signatures.direction = periods.direction
        where signatures.is_default
        order by signatures.volume_bytes desc nulls last, signatures.application_id, signatures.direction
    """
    signatures = connection.sql(query).fetchall()
    rows = [
        (
            name,
            direction,
            runs,
            bytes_text(volume),
            period and duration_text(period),
            expected_correlation and f"{expected_correlation:.2f}",
            outcome.replace("_", " "),
        )
        for name, direction, runs, volume, period, expected_correlation, outcome in signatures[:_TOP]
    ]
    if rows:
        title = format_title("I/O of applications without interference", len(rows), len(signatures))
        columns = ("application", "direction", "runs", "bytes of a run", "period", "expected correlation", "signature")
        show(title, columns, rows, last=("runs", "signature"))


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
    """Print how well inferred classes and periods agree with those measured from the runs' own bytes."""
    from iosig.answers.report.quality import inference_agreement
    from iosig.reports.texts import ratio_text

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


def warnings(connection: duckdb.DuckDBPyConnection) -> list[tuple[str, str, str]]:
    """Return failed checks other than notes: severity, message and expectation."""
    import json

    from iosig.expectations import sentences, suites

    query = """
        select table_name, expectation, severity, unexpected_count, observed
        from quality
        where not success and severity <> 'info'
        order by severity, table_name, expectation
    """
    return [
        (
            severity,
            sentences.describe_failure(suites.look_up_rule(table, name, severity), count, json.loads(observed)),
            f"{table}.{name}",
        )
        for table, name, severity, count, observed in connection.sql(query).fetchall()
    ]


def missing_inputs(connection: duckdb.DuckDBPyConnection) -> list[str]:
    """Return, as sentences, the results that are missing for lack of an input or a setting."""
    counts = {
        name: connection.sql(f'select count(*) from "{name}"').fetchall()[0][0]
        for name in ("jobs", "polls_daily", "series_intervals", "rejects")
    }
    notes = []
    if not counts["jobs"]:
        notes.append("No job log has landed, so the release has no samples, applications or job classes.")
    if not counts["polls_daily"]:
        notes.append("No polls have landed, so the storage traffic during runs is unknown.")
    if counts["jobs"] and counts["polls_daily"]:
        notes += _describe_unmatched_filesystems(connection)
    if counts["rejects"]:
        notes.append(f"{counts['rejects']:,} input rows or files were refused; `iosig sql 'from rejects'` lists them.")
    return notes


def extrapolations(connection: duckdb.DuckDBPyConnection) -> list[str]:
    """Return, as a sentence, the number of extrapolations and their outcomes; empty without extrapolations."""
    query = "select count(*), count(*) filter (outcome = 'extrapolated') from extrapolations"
    ((count, trace_count),) = connection.sql(query).fetchall()
    sentence = (
        f"{trace_count:,} of {count:,} extrapolations gave a trace; `iosig sql 'from extrapolations'` lists them."
    )
    return [sentence] if count else []


def _describe_unmatched_filesystems(connection: duckdb.DuckDBPyConnection) -> list[str]:
    query = """
        select filesystem, count(*)
        from jobs
        where is_application_run
            and filesystem is not null
            and filesystem not in (select distinct filesystem from polls_daily)
        group by all
        order by filesystem
    """
    landed = connection.sql("select string_agg(distinct filesystem, ', ') from polls_daily").fetchall()[0][0]
    return [
        (
            f"{count:,} runs used file system {name}, but no polls of it have landed (landed: {landed}). If the polls "
            "use another name, map it under [filesystems] in the settings."
        )
        for name, count in connection.sql(query).fetchall()
    ]
