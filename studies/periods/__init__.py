"""Accuracy and false alarms of the period detectors, reproducible from a seed: `iosig study periods`.

- `figures`: Figures: errors as in FTIO's Figure 8, deviations as in its Figure 9, false alarms, examples.
- `memoryless`: Memoryless random signals, in which a detector must find no period.
- `methods`: The compared period detectors, by name, in the order shown.
- `noise`: White, red and burst noise, in which a detector must find no period.
- `oracles`: Estimators with extra knowledge, which bound the performance of detectors.
- `page`: Template variables, tables and figures of the page.
- `rhythms`: Periodic signals as in real runs: short, noisy, uneven, or with gaps.
- `running`: The study itself: draws traces and noise, runs every method, and keeps one row per result.
- `scenarios`: The settings of the semi-synthetic traces, and the kinds of noise.
- `semi_synthetic`: Traces with a known period: FTIO's "semi-synthetic" traces, drawn from a seed.
- `summary`: Scores by method, and our results next to the statements of the paper.
- `unseen`: Results on signals that no method was tuned on: claims, power, false alarms, holes and ticks.
- `unseen_page`: Tables of these results.
"""

from iosig.studies.study import SEED, WORKERS, Study, count_option, part_option

#: results that `--part` can select
PARTS = ("traces", "rhythms", "memoryless", "traps")

STUDY = Study(
    "periods",
    "Accuracy and false alarms of period detection.",
    """Measure detection errors on traces with a known period, and false alarms on noise.

    The traces are those of FTIO's evaluation (IPDPS'24, section III-A): applications of 20 iterations with compute
    phases of several lengths, late processes, varying compute phases, and noise. The noise is white, red, or bursts
    at random times. Validation signals with a period, without one, and with regular gaps or ticks are signals that no
    method was tuned on. The same seed gives the same results.
    """,
    (
        count_option("--traces", "trace_count", 100, "Number of traces of each of the 50 settings."),
        count_option("--draws", "draw_count", 1000, "Number of signals of each of the 10 noises."),
        count_option("--unseen-draws", "unseen_count", 100, "Number of validation signals of each kind."),
        SEED,
        part_option(PARTS),
        WORKERS,
    ),
    part="parts",
)
