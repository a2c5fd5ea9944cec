"""Test samples.job_io_sources: polls, counters and traces of a run in a single table."""

from __future__ import annotations

from iosig.warehouse.contracts.job_io import JOB_IO_SOURCES
from tests.sql.given import Select, expect


def test_all_sources_are_listed_with_their_name(select: Select) -> None:
    found = select(
        JOB_IO_SOURCES,
        {
            "samples.server_io": """
            cluster  job_id  started_at  filesystem  direction  outcome   volume_bytes  poll_count
            edison   7       10:00:00    lake        read       measured  1000          5
            edison   7       10:00:00    lake        write      no_polls  .             0
            """,
            "samples.client_io": """
            cluster  job_id  started_at  filesystem  direction  trace_id  volume_bytes
            edison   7       10:00:00    lake        read       abc       900
            edison   7       10:00:00    lake        read       abd       90
            default  tmio    .           .           write      abe       9
            """,
            "samples.exact_io": """
            cluster  job_id  started_at  filesystem  direction  volume_bytes
            edison   7       10:00:00    lake        read       800
            """,
        },
    )
    expect(
        found,
        """
        job_id  direction  source    trace_id  outcome   filesystem_bytes  own_bytes  poll_count
        tmio    write      client    abe       measured  .                 9          .
        7       read       client    abc       measured  .                 900        .
        7       read       client    abd       measured  .                 90         .
        7       read       jobstats  .         measured  .                 800        .
        7       read       server    .         measured  1000              .          5
        7       write      server    .         no_polls  .                 .          0
        """,
    )
