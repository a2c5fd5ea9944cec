"""Detection of recurring patterns in unattributed traffic, and their likely jobs: `iosig study unattributed`.

- `page`: Template variables, tables and the figure of the page.
- `planted`: Applications planted on a site without log entries, and which of them are detected.
- `real`: A measured day: runs whose true bytes are known, among decoys.
- `running`: The study itself: plants applications, detects patterns, and ranks jobs without a signature.
"""

from iosig.studies.study import DAY_FILES, SEED, WORKERS, Study, seed_count_option

STUDY = Study(
    "unattributed",
    "What of traffic that no signature explains is found, and who is likely to have moved it.",
    """Measure what is found in the traffic that signatures do not explain.

    On simulated sites applications are planted that no log names: how many are found, and what else is taken for one.
    Jobs are ranked by when much flowed, too: how often the one that moved most is among the first three.
    With a real day of polls and its job log: whether its runs come before decoys.
    """,
    (seed_count_option(5, "Sites of each family and level."), SEED, *DAY_FILES, WORKERS),
)
