"""How much nearer signatures come to the truth where they are found together, less what other applications explain.

- `page`: What the study of joint signatures shows: its page, and tables.
- `plain`: What is published of sample sets if nothing is said: of each application the usual method trusted most.
- `real`: A real day: bursts that were measured, in runs of made-up applications, among what really flowed that day.
- `running`: The study itself: draws sites, finds signatures plainly and together, and holds them to the truth.
- `sites`: Sites whose foreign traffic is mostly other jobs', as a night sees them.
"""

from iosig.studies.study import DAY_FILES, SEED, WORKERS, Study, seeds

STUDY = Study(
    "joint",
    "How much nearer signatures come to the truth where they are found together.",
    """Measure how far signatures are from the truth that are found together, and those that are found plainly.

    Sites of several families are simulated whose foreign traffic is mostly that of other applications in the job log,
    and one of which nothing of it is. With a real day of polls and its job log: runs of bursts that were
    measured, among what flowed that day.
    """,
    (seeds(5, "Sites of each family and level."), SEED, *DAY_FILES, WORKERS),
)
