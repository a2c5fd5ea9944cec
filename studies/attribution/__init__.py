"""Accuracy of traffic attribution and slowdowns, on sites with ground truth: `iosig study attribution`.

- `page`: Template variables and the figure of the page.
- `running`: The study itself: simulates sites, extracts signatures, attributes traffic by every method, and compares.
- `slowdowns`: Estimated slowdowns of bursts, compared with the service times of the simulated storage.
- `ways`: Methods of attributing traffic to jobs: that of the nightly run, and baselines.
"""

from iosig.studies.study import SEED, WORKERS, Study, seed_count_option

STUDY = Study(
    "attribution",
    "Accuracy of traffic attribution and slowdowns, on simulated sites.",
    """Measure the explained and the wrongly attributed bytes, and how often the top-ranked jobs are the right ones.

    Signatures are extracted from the traffic of simulated sites of several families. Attribution by signatures is
    compared with baselines: equal shares, shares by node count, and signatures at their planned times.
    """,
    (seed_count_option(20, "Sites of each family and level."), SEED, WORKERS),
)
