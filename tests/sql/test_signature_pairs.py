"""Test transforms.exact_pairs and traced_pairs: runs paired with signatures for comparison."""

from __future__ import annotations

import polars as pl

from iosig.warehouse.contracts.signatures import EXACT_PAIRS, TRACED_PAIRS
from tests.sql.given import Select, expect, rows

EXACT, SETS, SIGNATURES = "samples.exact_samples", "samples.sample_sets", "transforms.signatures"
JOBS, SAMPLES = "stage.trace_jobs", "samples.samples"


def test_exact_samples_are_paired_with_default_signature(select: Select) -> None:
    signatures = rows(
        SIGNATURES,
        """
        application_id filesystem direction method is_default outcome   volume_bytes
        wave           lake       write     iosi   yes        extracted 9
        wave           lake       write     mean   no         extracted 8
        wave           lake       read      iosi   yes        no_io     .
        """,
    )
    given = {
        SIGNATURES: signatures.with_columns(outlier_job_ids=pl.lit('["2", "10"]')),
        EXACT: """
            job_id application_id filesystem direction outcome
            1      wave           lake       write     measured
            2      wave           lake       write     measured
            3      wave           lake       write     measured
            4      wave           lake       write     incomplete
            5      wave           lake       read      measured
            6      wave           pond       write     measured
            7      .              lake       write     measured
            """,
        SETS: """
            job_id application_id filesystem direction source
            1      wave           lake       write     jobstats
            2      wave           lake       write     jobstats
            3      wave           lake       write     server
            """,
    }
    expected = """
        job_id method is_training_run volume_bytes
        1      iosi   yes     9
        2      iosi   no      9
        3      iosi   no      9
        """
    expect(select(EXACT_PAIRS, given), expected)


def test_traces_are_paired_with_each_signature_of_their_application(select: Select) -> None:
    given = {
        JOBS: """
            trace_id cluster job_id job_started_at
            a        cluster 1      12:00:00
            b        cluster 1      12:00:00
            c        cluster 1      12:00:01
            d        cluster 2      12:00:00
            e        .       1      12:00:00
            f        cluster 3      12:00:00
            """,
        SAMPLES: """
            job_id application_id filesystem direction
            1      wave           lake       read
            1      wave           lake       write
            1      wave           pond       write
            2      rare           lake       write
            3      .              lake       write
            """,
        SIGNATURES: rows(
            SIGNATURES,
            """
            application_id filesystem method direction metric     outcome
            wave           lake       iosi   write     bytes      extracted
            wave           lake       mean   write     bytes      extracted
            wave           lake       iosi   write     operations extracted
            wave           lake       iosi   read      bytes      no_io
            """,
        ).with_columns(outlier_job_ids=pl.lit("[]")),
    }
    expect(
        select(TRACED_PAIRS, given),
        """
        trace_id application_id direction metric method
        a        wave           write     bytes  iosi
        a        wave           write     bytes  mean
        b        wave           write     bytes  iosi
        b        wave           write     bytes  mean
        """,
    )


def test_traced_run_trained_the_signatures_that_rest_on_its_own_sample(select: Select) -> None:
    signatures = rows(
        SIGNATURES,
        """
        application_id filesystem direction method outcome
        wave           lake       read      iosi   extracted
        wave           lake       write     iosi   extracted
        wave           pond       write     iosi   extracted
        """,
    )
    given = {
        JOBS: """
            trace_id cluster job_id job_started_at
            a        cluster 1      12:00:00
            b        cluster 2      12:00:00
            c        cluster 3      12:00:00
            """,
        SAMPLES: "job_id application_id \n 1 wave \n 2 wave \n 3 wave",
        SIGNATURES: signatures.with_columns(
            outlier_job_ids=pl.when(filesystem="lake", direction="write").then(pl.lit('["2"]'))
        ),
        SETS: """
            job_id application_id filesystem direction source   metric
            1      wave           lake       write     client   bytes
            2      wave           lake       write     client   bytes
            1      wave           lake       read      jobstats bytes
            1      wave           pond       write     server   bytes
            1      wave           pond       write     client   operations
            """,
    }
    expect(
        select(TRACED_PAIRS, given),
        """
        trace_id filesystem direction is_training_run
        a        lake       read      yes
        a        lake       write     yes
        a        pond       write     no
        b        lake       read      no
        b        lake       write     no
        b        pond       write     no
        c        lake       read      no
        c        lake       write     no
        c        pond       write     no
        """,
    )
