"""Accuracy of joint signatures, extracted after subtracting the traffic of other applications: `iosig study joint`.

- `page`: Template variables and the figure of the page.
- `plain`: The signatures published by default, extracted separately and jointly.
- `real`: Measured bursts in runs of synthetic applications, injected into a day of measured traffic.
- `running`: The study itself: simulates sites, extracts signatures separately and jointly, compares with the truth.
- `sites`: Simulated sites with background traffic mostly from other jobs.
"""

from iosig.studies.study import DAY_FILES, SEED, WORKERS, Study, seed_count_option

STUDY = Study(
    "joint",
    "Accuracy of joint signature extraction, on simulated sites.",
    """Measure the distance from the truth of signatures extracted jointly, and of those extracted separately.

    The background traffic of the simulated sites is mostly that of other applications in the job log; in one family
    it is in no log. With measured polls of a day and its job log, runs with measured bursts are injected into that
    day's traffic.
    """,
    (seed_count_option(5, "Sites of each family and level."), SEED, *DAY_FILES, WORKERS),
)
