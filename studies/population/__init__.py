"""Accuracy of I/O classes and periods inferred from shared traffic: `iosig study population`.

- `page`: Template variables, tables and the figure of the page.
- `running`: The study itself: simulates sites, infers classes and periods of all runs by every method, and compares.
- `ways`: Methods of inferring a run's class and period, and the truth.
- `year`: A year of jobs with the classes and periods of PEARC'18 planted, and the statistics of `iosig population`.
"""

from iosig.studies.study import SEED, WORKERS, Study, count_option, part_option, seed_count_option

#: results that `--part` can select
PARTS = ("sites", "year")

STUDY = Study(
    "population",
    "Accuracy of I/O classes and periods inferred from shared traffic.",
    """Measure how often inferred classes and periods of runs are right.

    The truth is the class (PEARC'18) and period of each run's own bytes on simulated sites. They are inferred from the
    total traffic during the run, from the application's signature, and from the traffic that it explains.

    A simulated year of measured jobs has the classes and periods of the paper's tables and figures planted. The study
    compares them with the statistics of `iosig population`.
    """,
    (
        seed_count_option(5, "Sites of each family and level."),
        SEED,
        count_option("--jobs", "job_count", 6000, "Jobs of the simulated year."),
        part_option(PARTS),
        WORKERS,
    ),
    part="parts",
)
