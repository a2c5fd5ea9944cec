"""How good predictions are while a run goes on, where the truth is known: `iosig study predictions`."""

from studies.study import SEED, WORKERS, Study, seeds

STUDY = Study(
    "predictions",
    "How good online predictions are, where the truth is planted.",
    """Measure how well periods, their changes and next bursts are predicted while runs with planted phases go on.

    Runs like HACC-IO (FTIO, IPDPS'24, section III-B), periods that double or halve at 0.005 to 5 Hz, jitter,
    background, and runs without any period; every detector of changes gets the same gaps between phases.
    """,
    (seeds(100, "Runs of each setting."), SEED, WORKERS),
)
