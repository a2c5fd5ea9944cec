"""Test transforms.exact_pairs and traced_applications: runs paired with signatures for comparison."""

from __future__ import annotations

import polars as pl

from iosig.warehouse.contracts.signatures import EXACT_PAIRS, TRACED_APPLICATIONS
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


def test_traces_belong_to_application_of_their_run(select: Select) -> None:
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
        SIGNATURES: "application_id method direction \n wave iosi write \n wave mean write",
    }
    expect(select(TRACED_APPLICATIONS, given), "trace_id application_id \n a wave \n b wave")
