"""What extrapolation gets right, fits and refuses, on traces whose next rank count is known: `iosig study`.

- `checking`: An extrapolated trace held against the traced one, call by call, and its times beside the traced ones.
- `figures`: Pictures of the study of extrapolations: sizes by ranks, times by ranks.
- `maps`: Where ranks read and write in a file that they share out among them, as the paper's Table 1 has it.
- `page`: What the study of extrapolations shows: its page, and all tables for JSON.
- `programs`: The traced programs of a folder: one Recorder trace for each rank count, found and decoded once.
- `running`: The study itself: for each program, models from some rank counts, checked call by call at the others.
- `tables`: The study's results as tables: those that a terminal shows, and those of the page.
"""

from pathlib import Path

import click

from iosig.studies.study import WORKERS, Study

STUDY = Study(
    "extrapolations",
    "How exactly traces are extrapolated, on real ones.",
    """Measure what extrapolation gets right, fits and refuses, on programs whose traces are at hand.

    Each rank count of each program is left out in turn, extrapolated from the others, and compared with its trace
    call by call: outer calls, and with nested ones. Then all are used, and each is compared once more.
    """,
    (
        click.Option(
            ["--traces"],
            required=True,
            type=click.Path(path_type=Path, exists=True, file_okay=False),
            help="Recorder traces as PROGRAM/RANKS/, a folder for each rank count with the trace or an archive of it.",
        ),
        WORKERS,
    ),
)
