"""The evaluation of the searches for periods, reproducible from a seed: `iosig study periods`.

- `figures`: Pictures of the study of periods: errors as FTIO's Figure 8, deviations as its Figure 9, false alarms.
- `memoryless`: Signals in which nothing knows when anything happened before: a search must find no period in them.
- `methods`: The searches for a period that are compared, by name: one list, in the order in which they are shown.
- `noise`: Noise of the kinds that I/O has: what a search for periods must not take for a period.
- `oracles`: What who knows more than a search may know finds: the bound beside what a search finds.
- `page`: What the study of periods shows: its page, and tables that fit a terminal.
- `rhythms`: Signals with a period of the kinds that real runs have: short, noisy, uneven, cut by gaps.
- `running`: The study itself: draws traces and noise, asks every method, and keeps a row for each answer.
- `scenarios`: What is studied: the settings of the semi-synthetic traces, and the kinds of noise.
- `semi_synthetic`: Application traces whose period is known: FTIO's "semi-synthetic" traces, drawn from a seed.
- `summary`: What the study's answers say: a row for each method.
- `unseen`: What searches say of signals on which nothing was set: claims, power, false alarms, holes and ticks.
- `unseen_page`: What the page and the terminal show of them.
"""

from iosig.studies.study import SEED, WORKERS, Study, count, parts

#: what can be asked for
PARTS = ("traces", "rhythms", "memoryless", "traps")

STUDY = Study(
    "periods",
    "How well periods are found: 50 settings of traces, 10 noises.",
    """Measure how well the searches for periods do, on traces whose period is known and on noise.

    The traces are those of FTIO's evaluation (IPDPS'24, section III-A): applications of 20 iterations, with compute
    phases of several lengths, processes that begin late, compute phases that differ, and noise. A method should find
    their period, and none in white noise, red noise and bursts at random times. Further signals with a period, without
    one, and with regular holes or ticks are those on which no method was set. The same seed gives the same results.
    """,
    (
        count("--traces", "trace_count", 100, "Traces of each of the 50 settings."),
        count("--draws", "draw_count", 1000, "Signals of each of the 10 noises."),
        count("--unseen-draws", "unseen_count", 100, "Signals of each kind on which no method was set."),
        SEED,
        parts(PARTS),
        WORKERS,
    ),
    part="parts",
)
