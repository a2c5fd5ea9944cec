"""How much of a file system's traffic is given to whom it belongs, on sites whose truth is known.

- `hurting`: Who was slowed: what is said of bursts, against what storage served.
- `page`: What the study of attribution shows: its page, and tables.
- `running`: The study itself: draws sites, finds signatures, attributes by every way, and holds that to the truth.
- `ways`: Ways of giving traffic to jobs: ours, and what one would do without it.
"""

from iosig.studies.study import SEED, WORKERS, Study, seeds

STUDY = Study(
    "attribution",
    "How much of a file system's traffic is given to whom it belongs.",
    """Measure what attribution explains, what it gives wrongly, and whether the first jobs it names are the right ones.

    Sites of several families are simulated; signatures are found in their traffic, and the traffic is given to jobs by
    these and by what one would do without: equal shares, shares by node count, and signatures as they are planned.
    """,
    (seeds(20, "Sites of each family and level."), SEED, WORKERS),
)
