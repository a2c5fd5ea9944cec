"""Accuracy of traffic attribution and slowdowns, on sites with ground truth: `iosig study attribution`.

- `page`: Template variables and the figure of the page.
- `running`: The study itself: simulates sites, extracts signatures, attributes by every way, compares with the truth.
- `slowdowns`: Estimated slowdowns of bursts, compared with the service times of the simulated storage.
- `ways`: Ways of attributing traffic to jobs: the nightly one, and baselines.
"""

from iosig.studies.study import SEED, WORKERS, Study, seed_count_option

STUDY = Study(
    "attribution",
    "How much of a file system's traffic is given to whom it belongs.",
    """Measure what attribution explains, what it gives wrongly, and whether the first jobs it names are the right ones.

    Sites of several families are simulated; signatures are found in their traffic, and the traffic is given to jobs by
    these and by what one would do without: equal shares, shares by node count, and signatures as they are planned.
    """,
    (seed_count_option(20, "Sites of each family and level."), SEED, WORKERS),
)
