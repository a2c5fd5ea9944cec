"""How well networks' patterns are named and clocks are set, where the truth is planted: `iosig study networks`.

- `page`: What the study of networks shows: its page, and tables.
- `planted`: Parallel I/O systems that never were, each with a pattern planted in its times.
- `running`: The study itself: plants patterns and clocks, asks for them, and keeps a row for each answer.
"""

from iosig.studies.study import SEED, Study, seeds

STUDY = Study(
    "networks",
    "How well patterns are named and clocks are set, where they are planted.",
    """Measure how often planted patterns of networks are named rightly, and how exactly planted clocks are found.

    The patterns are those of Sigovan et al. (IPDPS'13, Figure 6): circular, striped, noisy, outlier; in systems of 16
    to 8,192 ranks.
    """,
    (seeds(100, "Systems of each pattern; sets of clocks."), SEED),
    drawn="figure",
)
