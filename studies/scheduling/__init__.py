"""What knowing periods is worth to an I/O scheduler, by simulation: `iosig study scheduling`.

- `figures`: The figure of the study of scheduling: stretch, I/O slowdown and utilization, as FTIO's Figure 17.
- `observed_periods`: The period of jobs whose I/O phases are seen one by one: FTIO's online prediction.
- `page`: What the study of scheduling shows: its page, and its table.
- `running`: The study itself: simulates workloads under every policy, and keeps a row for each run.
- `simulation`: Jobs that compute and do I/O on one shared file system: what it costs them.
"""

from iosig.studies.study import SEED, Study, seeds

STUDY = Study(
    "scheduling",
    "What knowing periods is worth to an I/O scheduler, by simulation.",
    """Measure stretch, I/O slowdown and utilization under Set-10, with periods known, predicted online, and wrong.

    The workload of FTIO's Figure 17 (IPDPS'24, section IV), and a mixed one; simulated beside fair sharing.
    """,
    (seeds(10, "Draws of each workload."), SEED),
    drawn="figure",
)
