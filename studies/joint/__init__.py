"""Accuracy of signatures extracted jointly, after subtracting what other applications explain: `iosig study joint`.

- `page`: Template variables and the figure of the page.
- `plain`: The signatures published by default: per application, those of the method with the best expected correlation.
- `real`: Measured bursts in runs of synthetic applications, injected into a day of measured traffic.
- `running`: The study itself: simulates sites, extracts signatures separately and jointly, compares with the truth.
- `sites`: Sites whose background traffic is mostly that of other jobs.
"""

from iosig.studies.study import DAY_FILES, SEED, WORKERS, Study, seed_count_option

STUDY = Study(
    "joint",
    "How much nearer signatures come to the truth where they are found together.",
    """Measure how far signatures are from the truth that are found together, and those that are found plainly.

    Sites of several families are simulated whose foreign traffic is mostly that of other applications in the job log,
    and one of which nothing of it is. With a real day of polls and its job log: runs of bursts that were
    measured, among what flowed that day.
    """,
    (seed_count_option(5, "Sites of each family and level."), SEED, *DAY_FILES, WORKERS),
)
