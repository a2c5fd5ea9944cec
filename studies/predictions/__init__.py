"""Accuracy of online predictions on planted runs: `iosig study predictions`.

- `figures`: Figures: detected changes, tracking of changes, next bursts and intervals.
- `page`: Template variables, tables and figures of the page.
- `peer_rules`: FTIO's change-detection rules, on frequencies in hertz, for comparison.
- `planted`: Synthetic runs with known I/O phases.
- `running`: The study itself: predicts planted runs, phase by phase.
- `scenarios`: The planted runs, and the parameters of their predictions.
- `summary`: Scores by setting, and the targets.
"""

from iosig.studies.study import SEED, WORKERS, Study, seed_count_option

STUDY = Study(
    "predictions",
    "Accuracy of online predictions, on synthetic runs with known phases.",
    """Measure the accuracy of predicted periods, their changes and next bursts on synthetic runs.

    Runs are like HACC-IO (FTIO, IPDPS'24, section III-B), have periods that double or halve at 0.005 to 5 Hz, jitter or
    background, or have no period. Every change detector gets the same gaps between phases.
    """,
    (seed_count_option(100, "Runs of each setting."), SEED, WORKERS),
)
