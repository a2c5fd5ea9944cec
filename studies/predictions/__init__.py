"""How good predictions are while a run goes on, where the truth is known: `iosig study predictions`.

- `figures`: The figures of the study of predictions: changes told, changes followed, next bursts and intervals.
- `page`: What the study of predictions shows: its page, and tables.
- `peer_rules`: How a peer tells of changes, for comparison: three rules on frequencies in hertz.
- `planted`: Runs whose I/O phases are known, phase by phase: what predictions of periods are tried on.
- `running`: The study itself: predicts planted runs, phase by phase.
- `scenarios`: What is tried: runs whose truth is known, and with which parameters they are predicted.
- `summary`: The study in short: what is told of its rows, by setting.
"""

from iosig.studies.study import SEED, WORKERS, Study, seeds

STUDY = Study(
    "predictions",
    "How good online predictions are, where the truth is planted.",
    """Measure how well periods, their changes and next bursts are predicted while runs with planted phases go on.

    Runs like HACC-IO (FTIO, IPDPS'24, section III-B), periods that double or halve at 0.005 to 5 Hz, jitter,
    background, and runs without any period; every detector of changes gets the same gaps between phases.
    """,
    (seeds(100, "Runs of each setting."), SEED, WORKERS),
)
