"""What a release says of the quality of its days, and how it differs from the one before, for the report."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import polars as pl

from iosig.reports.site.pages import QUALITY
from iosig.reports.site.quality import QualityFrames

if TYPE_CHECKING:
    import duckdb

_MOST_DAYS, _MOST_REJECTS = 120, 200


def read(connection: duckdb.DuckDBPyConnection) -> QualityFrames:
    """Return the frames."""
    return QualityFrames(
        days=connection.sql(_DAYS, params={"days": _MOST_DAYS}).pl(),
        failed=_said(connection.sql(FAILED).pl()),
        reject_count=int(connection.sql("select count(*) from rejects").fetchall()[0][0]),
        rejects=connection.sql(_REJECTS, params={"most": _MOST_REJECTS}).pl(),
        quarantined=connection.sql(_QUARANTINED).pl(),
        inference=inference_agreement(connection),
    )


def inference_agreement(connection: duckdb.DuckDBPyConnection) -> pl.DataFrame:
    """Return how often inferred classes and periods agree with measured ones, as the page shows it."""
    agreement: pl.DataFrame = connection.sql(QUALITY.figure("inference").query).pl()
    return agreement


def failed_checks(connection: duckdb.DuckDBPyConnection) -> pl.DataFrame:
    """Return the checks that do not hold, warnings and worse, each with what happened, in a sentence."""
    return _said(connection.sql(FAILED).pl())


def _said(failed: pl.DataFrame) -> pl.DataFrame:
    from iosig.expectations import sentences, suites

    happened = [
        sentences.happened(rule, row["unexpected_count"], observed)
        for row in failed.iter_rows(named=True)
        for rule in [suites.released_rule(row["table_name"], row["expectation"], row["severity"])]
        for observed in [json.loads(row["observed"])]
    ]
    return failed.drop("observed").with_columns(happened=pl.Series(happened, dtype=pl.String))


_DAYS = """
    select filesystem, polled_on, missing_ratio, poll_count, expected_poll_count, implausible_poll_count,
        conflicting_poll_count
    from polls_daily
    where polled_on > (select max(polled_on) from polls_daily) - $days
        -- a poll at midnight is the last one of the day before
        and polled_on <= (select max(polled_at - interval 1 microsecond)::date from filesystem_rates)
    order by filesystem, polled_on
"""

FAILED = """
    select severity, table_name, expectation, unexpected_count, observed
    from quality
    where not success and severity <> 'info'
    order by severity, table_name, expectation
"""

_REJECTS = """
    select source_file, line, reason, remedy
    from rejects
    order by source_file, line, reason
    limit $most
"""

_QUARANTINED = """
    select table_name, rule, count(*) as row_count
    from quarantine
    group by all
    order by all
"""
