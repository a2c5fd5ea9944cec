"""Accuracy of I/O classes and periods inferred from shared traffic: `iosig study population`.

- `page`: Template variables, tables and the figure of the page.
- `running`: The study itself: simulates sites, infers classes and periods of all runs by every way, and the truth.
- `ways`: Ways of inferring a run's class and period, and the truth.
"""

from iosig.studies.study import SEED, WORKERS, Study, seed_count_option

STUDY = Study(
    "population",
    "How often classes and periods of runs are right where only shared traffic tells of them.",
    """Measure how well classes and periods of runs are told.

    Sites of several families are simulated of which every transfer is known. Classes and periods of each run's own
    bytes are those of PEARC'18; they are told from what flowed while it ran, too, from its application's signature, and
    from what that explains of the traffic.
    """,
    (seed_count_option(5, "Sites of each family and level."), SEED, WORKERS),
)
