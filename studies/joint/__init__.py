"""How much nearer signatures come to the truth where they are found together, less what other applications explain.

- `figures`: The figure of the study of joint signatures: distances to the truth, plain and joint.
- `page`: What the study of joint signatures shows: its page, and tables.
- `running`: The study itself: draws sites, finds signatures plainly and together, and holds them to the truth.
- `sites`: Sites whose foreign traffic is mostly other jobs', as a night sees them.
"""

from studies.study import SEED, WORKERS, Study, seeds

STUDY = Study(
    "joint",
    "How much nearer signatures come to the truth where they are found together.",
    """Measure how far signatures are from the truth that are found together, and those that are found plainly.

    Sites of several families are simulated whose foreign traffic is mostly that of other applications in the job log,
    and one of which nothing of it is.
    """,
    (seeds(5, "Sites of each family and level."), SEED, WORKERS),
)
