"""Accuracy of I/O classes and periods inferred from shared traffic: `iosig study population`.

- `page`: Template variables, tables and the figure of the page.
- `running`: The study itself: simulates sites, infers classes and periods of all runs by every method, and compares.
- `ways`: Methods of inferring a run's class and period, and the truth.
"""

from iosig.studies.study import SEED, WORKERS, Study, seed_count_option

STUDY = Study(
    "population",
    "Accuracy of I/O classes and periods inferred from shared traffic.",
    """Measure how often inferred classes and periods of runs are right.

    The truth is the class (PEARC'18) and period of each run's own bytes on simulated sites. They are inferred from the
    total traffic during the run, from the application's signature, and from the traffic that it explains.
    """,
    (seed_count_option(5, "Sites of each family and level."), SEED, WORKERS),
)
