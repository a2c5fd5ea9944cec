"""How runs do their I/O, told from shared traffic, held against what each run did: `iosig study population`.

- `page`: What the study shows: its page, a figure, and tables.
- `running`: The study itself: draws sites, tells classes and periods of all runs by every way, and of their own bytes.
- `ways`: Ways of telling a run's class and period, and the truth.
"""

from iosig.studies.study import SEED, WORKERS, Study, seeds

STUDY = Study(
    "population",
    "How often classes and periods of runs are right where only shared traffic tells of them.",
    """Measure how well classes and periods of runs are told.

    Sites of several families are simulated of which every transfer is known. Classes and periods of each run's own
    bytes are those of PEARC'18; they are told from what flowed while it ran, too, from its application's signature, and
    from what that explains of the traffic.
    """,
    (seeds(5, "Sites of each family and level."), SEED, WORKERS),
)
