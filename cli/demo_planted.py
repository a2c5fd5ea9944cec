"""Compare the facts planted in the demo's site with its last release."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from iosig.cli.printing import bytes_text
from iosig.flows.demo.planted import CHANGED, CULPRIT, VICTIM, collision, find_traced_job_id
from iosig.flows.demo.simulated import FILESYSTEM
from iosig.reports.texts import duration_text, format_count
from iosig.warehouse.releases.reading import open_release
from iosig.warehouse.store.store import Store

if TYPE_CHECKING:
    import duckdb

    from iosig.settings.model import Settings
    from iosig.transforms.synthetic.site import Site
    from iosig.warehouse.releases.releases import Release


#: minimum relative change that must be found for a volume that was doubled
_MIN_CHANGE = 0.5


@dataclass(frozen=True, slots=True)
class PlantedFact:
    """A planted fact, the release's result, and whether they agree."""

    kind: str
    planted: str
    found: str
    is_found: bool


def find_planted(store: Store, release: Release, settings: Settings, site: Site) -> list[PlantedFact]:
    """Look up each planted fact in a release."""
    from iosig.answers.findings.query import TABLES

    with open_release(store, release, f"signatures slowdowns jobs filesystem_rates {TABLES}") as connection:
        return [
            _change(connection),
            _slowdown(connection, site),
            _trace(connection, site),
            _start(store, release, settings, connection),
        ]


def _change(connection: duckdb.DuckDBPyConnection) -> PlantedFact:
    query = """
        select relative_volume_change, change_correlation
        from signatures
        where is_default and is_changed and split_part(application_id, '/', 2) = $name and direction = 'write'
    """
    observed, is_found = "no change", False
    for volume, correlation in connection.sql(query, params={"name": CHANGED}).fetchall():
        observed = f"signature changed: volume {volume:+.0%}, correlation with the previous night {correlation:.2f}"
        is_found = volume > _MIN_CHANGE
    return PlantedFact("change", f"{CHANGED} writes twice as much from day 3 on", observed, is_found)


def _slowdown(connection: duckdb.DuckDBPyConnection, site: Site) -> PlantedFact:
    from iosig.answers.attribution.query import Query
    from iosig.answers.attribution.slowdowns import find_slowdowns

    truth = collision(site)
    longer = truth.duration_s - truth.alone_s
    planted = (
        f"{VICTIM} job {truth.victim_job_id} overlaps {CULPRIT} job {truth.culprit_job_id} and takes {longer:.0f} s "
        "longer"
    )
    runs = find_slowdowns(connection, Query(FILESYSTEM, site.params.start, None)).runs
    rows = runs.filter(runs["job_id"] == truth.victim_job_id).to_dicts()
    if not rows:
        return PlantedFact("slowdown", planted, "no slowdown", False)
    row = max(rows, key=lambda slowed: slowed["delay_s"])
    culprit = (
        f"{row['top_interferer_application_id'].split('/')[1]} job {row['top_interferer_job_id']}"
        if row["top_interferer_job_id"]
        else "?"
    )
    observed = (
        f"{format_count(row['slowed_burst_count'], 'burst')} {row['delay_s']:.0f} s longer "
        f"({row['delay_low_s']:.0f} to {row['delay_high_s']:.0f}), top interferer: {culprit}"
    )
    return PlantedFact("slowdown", planted, observed, row["top_interferer_job_id"] == truth.culprit_job_id)


def _trace(connection: duckdb.DuckDBPyConnection, site: Site) -> PlantedFact:
    from iosig.answers.findings import query as findings

    job_id = find_traced_job_id(site)
    planted = f"job {job_id} is traced by Darshan: small, misaligned writes"
    ids = connection.sql("select trace_id from trace_jobs where job_id = $job", params={"job": job_id}).fetchall()
    rules = [
        finding["rule"]
        for run in findings.analyze_release(connection, [name for (name,) in ids])
        for finding in run.found_rows
    ]
    observed = f"{format_count(len(rules), 'finding')}: {', '.join(name.replace('_', ' ') for name in rules)}"
    return PlantedFact("trace", planted, observed, {"small_requests", "misaligned_requests"} <= set(rules))


def _start(
    store: Store, release: Release, settings: Settings, connection: duckdb.DuckDBPyConnection
) -> PlantedFact:  # fmt: skip
    from iosig.answers.report import advice

    names = [
        name
        for (name,) in connection.sql(
            "select distinct application_id from signatures where is_default and outcome = 'extracted' order by all"
        ).fetchall()
    ]
    rows = advice.read(store, release, settings, connection, names).rows
    waits = rows.filter((rows["place"] == 1) & (rows["delay_s"] > 0)).sort("now_bytes", descending=True)
    planted = f"{CULPRIT} is writing when the polls end: other jobs should start later"
    if waits.is_empty():
        return PlantedFact("start", planted, "no application gains from a delay", False)
    row = waits.row(0, named=True)
    name = row["application_id"].split("/")[1]
    observed = (
        f"{format_count(waits.height, 'application')} should start later: {name} by {duration_text(row['delay_s'])}, "
        f"which lowers its contended bytes from {bytes_text(row['now_bytes'])} to {bytes_text(row['then_bytes'])}"
    )
    return PlantedFact("start", planted, observed, True)
