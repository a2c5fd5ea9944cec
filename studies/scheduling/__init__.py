"""What knowing periods is worth to an I/O scheduler, by simulation: `iosig study scheduling`."""

from studies.study import SEED, Study, seeds

STUDY = Study(
    "scheduling",
    "What knowing periods is worth to an I/O scheduler, by simulation.",
    """Measure stretch, I/O slowdown and utilization under Set-10, with periods known, predicted online, and wrong.

    The workload of FTIO's Figure 17 (IPDPS'24, section IV), and a mixed one; simulated beside fair sharing.
    """,
    (seeds(10, "Draws of each workload."), SEED),
    drawn="figure",
)
