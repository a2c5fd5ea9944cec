"""The evaluation of the searches for periods, reproducible from a seed: `iosig study periods`."""

from studies.study import SEED, WORKERS, Study, count

STUDY = Study(
    "periods",
    "How well periods are found: 50 settings of traces, 10 noises.",
    """Measure how well the searches for periods do, on traces whose period is known and on noise.

    The traces are those of FTIO's evaluation (IPDPS'24, section III-A): applications of 20 iterations, with compute
    phases of several lengths, processes that begin late, compute phases that differ, and noise. A method should find
    their period, and none in white noise, red noise and bursts at random times. The same seed gives the same results.
    """,
    (
        count("--traces", "trace_count", 100, "Traces of each of the 50 settings."),
        count("--draws", "draw_count", 1000, "Signals of each of the 10 noises."),
        SEED,
        WORKERS,
    ),
)
