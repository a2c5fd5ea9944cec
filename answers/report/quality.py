"""Query the report's data on quality: gaps, failed checks, rejects and quarantine."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import polars as pl

from iosig.reports.site.pages import QUALITY
from iosig.reports.site.quality import QualityFrames

if TYPE_CHECKING:
    import duckdb

_MAX_DAYS, _MAX_REJECTS = 120, 200


def read(connection: duckdb.DuckDBPyConnection) -> QualityFrames:
    """Query the frames of the quality page."""
    return QualityFrames(
        days=connection.sql(_DAYS, params={"days": _MAX_DAYS}).pl(),
        failed=_describe_failures(connection.sql(FAILED).pl()),
        reject_count=int(connection.sql("select count(*) from rejects").fetchall()[0][0]),
        rejects=connection.sql(_REJECTS, params={"most": _MAX_REJECTS}).pl(),
        quarantined=connection.sql(_QUARANTINED).pl(),
        inference=inference_agreement(connection),
    )


def inference_agreement(connection: duckdb.DuckDBPyConnection) -> pl.DataFrame:
    """Query the agreement of inferred classes and periods with measured ones."""
    agreement: pl.DataFrame = connection.sql(QUALITY.figure("inference").query).pl()
    return agreement


def read_check_failures(connection: duckdb.DuckDBPyConnection) -> pl.DataFrame:
    """Query the failed checks of severity warning and above, each with a description of the failure."""
    return _describe_failures(connection.sql(FAILED).pl())


def _describe_failures(failed: pl.DataFrame) -> pl.DataFrame:
    from iosig.expectations import sentences, suites

    happened = [
        sentences.describe_failure(rule, row["unexpected_count"], observed)
        for row in failed.iter_rows(named=True)
        for rule in [suites.look_up_rule(row["table_name"], row["expectation"], row["severity"])]
        for observed in [json.loads(row["observed"])]
    ]
    return failed.drop("observed").with_columns(happened=pl.Series(happened, dtype=pl.String))


_DAYS = """
    select filesystem, polled_on, missing_ratio, poll_count, expected_poll_count, implausible_poll_count,
        conflicting_poll_count
    from polls_daily
    where polled_on > (select max(polled_on) from polls_daily) - $days
        -- a poll at midnight belongs to the day before
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
