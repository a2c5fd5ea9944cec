"""Simulated benefit of known periods to an I/O scheduler: `iosig study scheduling`.

- `page`: Template variables and the figure of the page.
- `running`: The study itself: simulates workloads under every policy, and keeps one row per run.
- `simulation`: Discrete-event simulation of jobs that share a file system, and where their periods come from.
"""

from iosig.studies.study import SEED, WORKERS, Study, seed_count_option

STUDY = Study(
    "scheduling",
    "Benefit of known periods to an I/O scheduler, by simulation.",
    """Measure stretch, I/O slowdown and utilization under Set-10 with known, predicted and wrong periods.

    The workloads are that of FTIO's Figure 17 (IPDPS'24, section IV) and a mixed one; the baseline is fair sharing.
    """,
    (seed_count_option(10, "Draws of each workload."), SEED, WORKERS),
    drawn="figure",
)
