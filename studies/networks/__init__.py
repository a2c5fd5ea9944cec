"""Detection of planted network patterns and clock offsets: `iosig study networks`.

- `page`: Template variables, tables and the figure of the page.
- `planted`: Synthetic parallel I/O systems with a pattern planted in their request times.
- `running`: The study itself: plants patterns and clock offsets, detects them, and keeps one row per result.
"""

from iosig.studies.study import SEED, Study, seed_count_option

STUDY = Study(
    "networks",
    "Detection of planted network patterns and clock offsets.",
    """Measure how often planted patterns of networks are detected, and the error of recovered clock offsets.

    The patterns are those of Sigovan et al. (IPDPS'13, Figure 6): circular, striped, noisy, outlier; in systems of 16
    to 8,192 ranks.
    """,
    (seed_count_option(100, "Systems of each pattern; sets of clocks."), SEED),
    drawn="figure",
)
