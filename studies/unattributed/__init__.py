"""Detection of recurring patterns in unattributed traffic, and their likely jobs: `iosig study unattributed`.

- `page`: Template variables, tables and the figure of the page.
- `planted`: Applications planted on a site without log entries, and their detection.
- `real`: A measured day: runs with known bytes among decoys.
- `running`: The study itself: plants applications, detects patterns, and ranks jobs without a signature.
"""

from iosig.studies.study import DAY_FILES, SEED, WORKERS, Study, seed_count_option

STUDY = Study(
    "unattributed",
    "Detection of recurring patterns in unattributed traffic, and ranking of their likely jobs.",
    """Measure the detection of applications in unattributed traffic.

    Unlogged applications are planted on simulated sites: counted are those detected, and false detections. Jobs without
    a signature are ranked by likely bytes: counted are the minutes whose top job is among the first three. With a real
    day of polls and its job log, its runs are ranked among decoys.
    """,
    (seed_count_option(5, "Sites of each family and level."), SEED, *DAY_FILES, WORKERS),
)
