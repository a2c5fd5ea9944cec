"""What extrapolation gets right, fits and refuses, on traces whose next rank count is known: `iosig study`."""

from pathlib import Path

import click

from studies.study import WORKERS, Study

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
