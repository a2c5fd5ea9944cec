"""`iosig demo`: simulate a site, run its nights, and compare the results with the truth."""

from __future__ import annotations

import math
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from iosig.cli.options import json_option
from iosig.warehouse.errors import UsageError
from iosig.warehouse.placing import scratch
from iosig.warehouse.store.store import Store

if TYPE_CHECKING:
    import polars as pl

    from iosig.cli.demo_planted import PlantedFact
    from iosig.flows.demo.simulated import TrueSignature
    from iosig.flows.executors import Engine
    from iosig.settings.model import Settings
    from iosig.transforms.signatures.signature import Signature
    from iosig.transforms.synthetic.job_statistics import JobStatistics
    from iosig.transforms.synthetic.site import Site
    from iosig.warehouse.releases.releases import Release

_MARK = ".iosig-demo"
#: modules that account for most of the import time of a night's worker processes
_WORKED_WITH = ("iosig.flows.steps.periods", "iosig.flows.steps.joint")


@click.command("demo")
@click.option("--seed", default=1, show_default=True, help="Random seed of the site.")
@click.option(
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder for the site's files and the warehouse. Default: a temporary folder.",
)
@click.option("--full", "is_full", is_flag=True, help="Print all results, table by table.")
@json_option
def demo_command(seed: int, output: Path | None, is_full: bool, as_json: bool) -> int:
    """Run three nights on a simulated site, and compare the results with the planted truth.

    The site is a Spider-like system over three days: job logs as sacct prints them and polls every 2 s, with
    interfering jobs, contention, failed runs and gaps. Planted facts are a program that changes its I/O on the third
    day, a run that another one slows down, a traced run and a start that should be delayed. On the third day, a log has
    a torn line and a file of polls is truncated: both are refused, the rest lands. The servers of a second file system
    count by job for a third of that day. The real Darshan logs that ship inside the `darshan` wheel land, too.
    """
    from iosig.flows.executors import with_processes

    folder = _fresh(output)
    click.echo(f"A simulated site, seed {seed}, in {folder}", err=True)
    # Checking and worker processes take seconds to import: they start before this process has imported much itself.
    with scratch(), with_processes() as engine:
        engine.preload(*_WORKED_WITH)
        _demonstrate(folder, engine, seed, is_full=is_full, as_json=as_json)
    return 0


def _demonstrate(folder: Path, engine: Engine, seed: int, *, is_full: bool, as_json: bool) -> None:
    """Simulate the site, run its nights, and print the results with two pictures, or as a document with `--json`."""
    from iosig.cli.demo_planted import find_planted
    from iosig.cli.demo_story import Story, tell
    from iosig.cli.hints import for_warehouse
    from iosig.cli.summary import show_summary
    from iosig.flows.demo.planted import DAYS, demo_site
    from iosig.flows.demo.simulated import (
        classes_truth,
        exact_site,
        signatures_truth,
    )
    from iosig.transforms.synthetic.workload import DAY_S

    store, inbox = Store(folder / "warehouse"), folder / "site"
    settings = _write_settings(store, inbox)
    site = demo_site(seed)
    last_day = site.params.start + timedelta(seconds=(DAYS - 1) * DAY_S)
    exact, statistics = exact_site(seed, last_day)
    releases, traced_count = _nights(store, settings, site, (exact, statistics), inbox, engine)
    release = releases[-1]
    planted = find_planted(store, release, settings, site)
    if as_json:
        _show_document(store, release, site, statistics, planted)
        return
    signatures = compare_signatures(store, release, signatures_truth(site))
    volumes = compare_volumes(store, release, statistics)
    if is_full:
        with for_warehouse(store.name):
            show_summary(store, release, settings, is_verbose=True)
        _show_traces(select_traced_runs(store, release))
        _show_comparison(compare_classes(store, release, classes_truth(site)))
        _show_signatures(signatures)
        _show_volumes(volumes)
    tell(store, Story(releases, planted, signatures, volumes, traced_count, last_day), folder, engine.executor)


def _write_settings(store: Store, inbox: Path) -> Settings:
    """Write the simulated site's settings into the warehouse, where later commands find them, and load them."""
    from iosig.flows.demo.simulated import settings_text
    from iosig.settings.model import FILE_NAME, load

    path = store.root / FILE_NAME
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(settings_text(inbox.absolute()), encoding="utf-8")
    return load(path, store.root)


def _nights(
    store: Store,
    settings: Settings,
    site: Site,
    counted: tuple[Site, JobStatistics],
    inbox: Path,
    engine: Engine,
) -> tuple[list[Release], int]:
    """Land the real logs, then run one night per day of the site, after that day's files reach the inbox.

    counted: the site with per-job server counters, and their values; its files arrive on the last day. Returns the
    releases and the number of real logs that landed.
    """
    from iosig.cli.demo_story import DRAWING_MODULES
    from iosig.cli.printing import report_steps
    from iosig.flows.demo.simulated import find_shipped_logs, list_days, write_site
    from iosig.flows.nightly import run_inline
    from iosig.streams.landing import ReadOptions, land_paths

    days, releases, landed_count = list_days(site), [], 0
    with report_steps(is_brief=True) as steps:
        for arrival in land_paths(store, settings, map(str, find_shipped_logs()), ReadOptions()):
            landed_count += arrival.landed is not None
            steps.done(f"land {Path(arrival.name).name}", arrival.row_count, 0.0)
        for day in days:
            is_last = day == days[-1]
            write_site(site, inbox, days=[day], with_faults=is_last)
            if is_last:
                _write_rest(site, *counted, inbox)

            def begin(name: str, left_s: float | None, day: date = day, *, is_last: bool = is_last) -> None:
                steps.begin(f"night of {day}: {name}", left_s)
                if is_last and name == "release":
                    # the workers are idle while this process publishes the release
                    engine.preload(*DRAWING_MODULES)

            releases.append(run_inline(store, settings, steps.done, engine=engine, begin=begin))
    return releases, landed_count


def _write_rest(site: Site, exact: Site, statistics: JobStatistics, inbox: Path) -> None:
    """Write the inputs of the last day: a run's trace, and the files of the site with per-job counters."""
    from iosig.flows.demo.planted import find_traced_job_id
    from iosig.flows.demo.simulated import EXACT_FILESYSTEM, write_site, write_statistics
    from iosig.flows.demo.trace import write_trace

    write_trace(site, find_traced_job_id(site), inbox / "traces")
    write_site(exact, inbox / exact.params.cluster, filesystem=EXACT_FILESYSTEM)
    write_statistics(statistics, inbox / exact.params.cluster)


def _show_document(
    store: Store, release: Release, site: Site, statistics: JobStatistics, planted: Sequence[PlantedFact]
) -> None:
    from iosig.cli.documents import DemoDocument
    from iosig.cli.printing import show_json
    from iosig.flows.demo.simulated import classes_truth, signatures_truth

    show_json(
        DemoDocument(
            release_id=release.release_id,
            warehouse=str(store.root),
            planted=planted,
            classes=compare_classes(store, release, classes_truth(site)).to_dicts(),
            signatures=compare_signatures(store, release, signatures_truth(site)).to_dicts(),
            volumes=compare_volumes(store, release, statistics).to_dicts(),
            traces=select_traced_runs(store, release).to_dicts(),
        )
    )


def _fresh(output: Path | None) -> Path:
    """Return an empty folder; the folder of an earlier demo is emptied, a folder with other content is refused."""
    if output is None:
        return Path(tempfile.mkdtemp(prefix="iosig-demo-"))
    if output.is_dir() and any(output.iterdir()):
        if not (output / _MARK).is_file():
            raise UsageError(f"{output} is not empty. Give the demo a new or empty folder.")
        shutil.rmtree(output)
    output.mkdir(parents=True, exist_ok=True)
    (output / _MARK).touch()
    return output


def compare_classes(store: Store, release: Release, truth: pl.DataFrame) -> pl.DataFrame:
    """Compare the most common class of each application's runs with its class when it runs alone.

    Returns application, direction, true_class, found_class, agreement_ratio (of its classified runs) and
    run_count.
    """
    import polars as pl

    from iosig.warehouse.releases.reading import open_release

    query = """
        select jobs.application, classes.direction, classes.label, count(*) as run_count
        from classes
        inner join jobs
            on classes.cluster = jobs.cluster
            and classes.subject_id = jobs.job_id
            and classes.started_at = jobs.started_at
        where classes.outcome = 'classified'
        group by all
    """
    with open_release(store, release, query) as connection:
        classes = connection.sql(query).pl()
    keys = ("application", "direction")
    per_application = classes.sort("run_count", "label", descending=[True, False]).group_by(keys, maintain_order=True)
    true_classes = truth.select(*keys, pl.col("label").alias("true_class"))
    matched = classes.join(true_classes, on=keys).filter(pl.col("label") == pl.col("true_class"))
    return (
        true_classes.join(per_application.agg(pl.col("label").first().alias("found_class")), on=keys, how="left")
        .join(classes.group_by(keys).agg(pl.col("run_count").sum()), on=keys, how="left")
        .join(matched.select(*keys, pl.col("run_count").alias("agreeing")), on=keys, how="left")
        .with_columns(agreement_ratio=pl.col("agreeing").fill_null(0) / pl.col("run_count"))
        .drop("agreeing")
        .sort(keys)
    )


def compare_signatures(store: Store, release: Release, truth: Sequence[TrueSignature]) -> pl.DataFrame:
    """Compare each application's default signature with the I/O that it generates alone.

    Returns one row per true signature: application, direction, outcome and method (NULL if the release lacks the sample
    set), expected_correlation (may be NULL), cross_correlation, correlation, volume_bytes, traced_bytes, burst_count,
    true_burst_count, missed_burst_count, false_burst_count, missing_burst_count (from the release).
    """
    import polars as pl

    from iosig.estimates.signatures.published import TABLES, defaults, read_signatures
    from iosig.warehouse.releases.reading import open_release

    with open_release(store, release, TABLES) as connection:
        rows = defaults(connection)
        published = {
            (row["application_id"], row["direction"]): (row, signature)
            for row, signature in zip(rows.iter_rows(named=True), read_signatures(connection, rows), strict=True)
        }
    compared = [
        _compare_signature(true, *published.get((true.application_id, true.direction), ({}, None))) for true in truth
    ]
    counts = ("burst_count", "true_burst_count", "missed_burst_count", "false_burst_count", "missing_burst_count")
    count_types = dict.fromkeys(counts, pl.Int64)
    value_types = dict.fromkeys(
        ("expected_correlation", "cross_correlation", "correlation", "volume_bytes", "traced_bytes"), pl.Float64
    )
    name_types = dict.fromkeys(("application", "direction", "outcome", "method"), pl.String)
    return pl.DataFrame(compared, schema={**name_types, **value_types, **count_types}).sort("application", "direction")


def _compare_signature(
    true: TrueSignature, published: Mapping[str, Any], signature: Signature | None
) -> dict[str, Any]:
    from iosig.transforms.signatures.bursts import Bursts
    from iosig.transforms.signatures.similarity import correlation, cross_correlation, match_bursts_in_order

    row: dict[str, Any] = {
        "application": true.application.name,
        "direction": true.direction,
        "outcome": None if signature is None else signature.outcome,
        **{name: published.get(name) for name in ("method", "expected_correlation", "missing_burst_count")},
        "traced_bytes": true.application.volume_bytes(true.direction),
        "true_burst_count": len(true.bursts),
    }
    bursts = Bursts.empty() if signature is None else signature.bursts
    row["burst_count"] = len(bursts)
    matched = len(match_bursts_in_order(bursts, true.bursts, true.slowdown_ratio)[0])
    row["missed_burst_count"], row["false_burst_count"] = len(true.bursts) - matched, len(bursts) - matched
    if signature is not None and signature.outcome == "extracted":
        row["volume_bytes"] = signature.volume_bytes
        for name, measure in (("cross_correlation", cross_correlation), ("correlation", correlation)):
            value = measure(signature.bytes_per_s, true.bytes_per_s)
            row[name] = value if math.isfinite(value) else None
    return row


def compare_volumes(store: Store, release: Release, statistics: JobStatistics) -> pl.DataFrame:
    """Compare per-job server counters with estimates cut from shared traffic, and with the bytes actually served.

    Returns one row per application and direction with traffic on the site that has per-job counters: application,
    direction, run_count (runs measured both ways), true_run_count (runs in which counted and served bytes are equal),
    exact_bytes and cut_bytes (medians over the runs).
    """
    import polars as pl

    from iosig.warehouse.releases.reading import open_release

    query = """
        select jobs.application, exact.job_id, exact.direction, exact.own_bytes, cut.filesystem_bytes as cut_bytes
        from job_io_sources as exact
        inner join job_io_sources as cut using (cluster, job_id, started_at, filesystem, direction)
        inner join jobs using (cluster, job_id, started_at)
        where
            exact.source = 'jobstats' and exact.outcome = 'measured'
            and cut.source = 'server' and cut.outcome = 'measured'
    """
    with open_release(store, release, query) as connection:
        volumes: pl.DataFrame = connection.sql(query).pl()
    served = statistics.moved.group_by("job_id").agg(pl.col("read_bytes", "written_bytes").sum())
    true_bytes = pl.when(pl.col("direction") == "read").then("read_bytes").otherwise("written_bytes")
    return (
        volumes.join(served, on="job_id")
        .filter(pl.col("own_bytes") > 0)
        .group_by("application", "direction")
        .agg(
            run_count=pl.len().cast(pl.Int64),
            true_run_count=(pl.col("own_bytes") == true_bytes).sum().cast(pl.Int64),
            exact_bytes=pl.col("own_bytes").median(),
            cut_bytes=pl.col("cut_bytes").median(),
        )
        .sort("application", "direction")
    )


def select_traced_runs(store: Store, release: Release) -> pl.DataFrame:
    """Return the traced runs with the results of the nightly runs.

    Columns: application, process_count, duration_s, read_bytes, written_bytes (of the modules that count), bases
    (sources of their signals), problems (modules that are not sound).
    """
    from iosig.warehouse.releases.reading import open_release

    query = """
        with signals as (
            select trace_id, string_agg(distinct basis, ', ' order by basis) as bases
            from trace_signals where is_counted group by trace_id
        ),

        modules as (
            select
                trace_id,
                sum(read_bytes) filter (is_counted)::double as read_bytes,
                sum(written_bytes) filter (is_counted)::double as written_bytes,
                string_agg(module || ' ' || outcome, ', ' order by module) filter (outcome <> 'sound') as problems
            from trace_counters group by trace_id
        )

        select
            coalesce(application, source_file) as application, process_count, duration_s,
            read_bytes, written_bytes, bases, problems
        from trace_jobs
        left join modules using (trace_id)
        left join signals using (trace_id)
        order by started_at, source_file
    """
    with open_release(store, release, query) as connection:
        runs: pl.DataFrame = connection.sql(query).pl()
    return runs


def _show_traces(traced: pl.DataFrame) -> None:
    from iosig.cli.printing import bytes_text, show

    rows = [
        (
            row["application"],
            row["process_count"],
            row["duration_s"],
            bytes_text(row["read_bytes"]),
            bytes_text(row["written_bytes"]),
            row["bases"],
            row["problems"],
        )
        for row in traced.iter_rows(named=True)
    ]
    columns = ("application", "processes", "duration_s", "read", "written", "signal basis", "not sound")
    show("Traced runs: the Darshan logs that come with iosig", columns, rows)


def _show_comparison(compared: pl.DataFrame) -> None:
    from iosig.cli.printing import show

    rows = [
        (
            row["application"],
            row["direction"],
            row["true_class"],
            row["found_class"],
            row["run_count"],
            None if row["agreement_ratio"] is None else f"{row['agreement_ratio']:.0%}",
        )
        for row in compared.iter_rows(named=True)
    ]
    columns = ("application", "direction", "class alone", "class of most runs", "classified runs", "agreement")
    show("Classes compared with the truth", columns, rows)


def _show_signatures(compared: pl.DataFrame) -> None:
    """Print the signatures next to the truth; a sentence replaces rows without traffic and without detection."""
    from iosig.cli.printing import bytes_text, say, show

    columns = (
        "application", "direction", "method", "expected corr.", "cross-corr.", "correlation", "volume found", "true",
        "bursts found", "true", "missed", "false",
    )  # fmt: skip
    digits_of = {"expected_correlation": 2, "cross_correlation": 3, "correlation": 3}
    rows, silent_count = [], 0
    for row in compared.iter_rows(named=True):
        if not row["true_burst_count"] and row["outcome"] != "extracted":
            silent_count += 1
            continue
        is_there = row["outcome"] == "extracted"
        rows.append(
            (
                row["application"],
                row["direction"],
                row["method"] if is_there else row["outcome"] or "no sample set",
                *(None if row[name] is None else f"{row[name]:.{digits}f}" for name, digits in digits_of.items()),
                bytes_text(row["volume_bytes"]),
                bytes_text(row["traced_bytes"]),
                row["burst_count"] if is_there else None,
                row["true_burst_count"],
                row["missed_burst_count"],
                row["false_burst_count"],
            )
        )
    show("Signatures compared with the truth (I/O without interference)", columns, rows)
    if silent_count:
        say(f"{silent_count} more move no bytes and correctly have no signature.")


def _show_volumes(volumes: pl.DataFrame) -> None:
    from iosig.cli.printing import bytes_text, show

    rows = [
        (
            row["application"],
            row["direction"],
            row["run_count"],
            row["true_run_count"],
            bytes_text(row["exact_bytes"]),
            bytes_text(row["cut_bytes"]),
        )
        for row in volumes.iter_rows(named=True)
    ]
    columns = ("application", "direction", "runs", "exact", "counted", "cut")
    show("Volumes of runs: counted by servers, and all traffic during the run", columns, rows)
