"""Compare extrapolated traces with traced ones, call by call: `iosig study extrapolations`.

- `checking`: Comparison of an extrapolated trace with the traced one: calls and end times.
- `figures`: Sizes and times by rank count, and offsets in a shared file.
- `maps`: Offsets of ranks in a shared file, as in Table 1 of the paper.
- `page`: Template variables and figures of the page, and the tables for JSON.
- `programs`: Discovery and decoding of the traced programs in a folder: one Recorder trace per rank count.
- `running`: The study itself: fits models on some rank counts, and checks them at the others.
- `tables`: Rows of the tables of the page and the terminal.
"""

from pathlib import Path

import click

from iosig.studies.study import WORKERS, Study

STUDY = Study(
    "extrapolations",
    "Accuracy of trace extrapolation, on real traces.",
    """Measure which extrapolations are exact, wrong or refused, on real traces.

    Each rank count of each program is left out in turn, extrapolated from the others, and compared with its trace
    call by call, with and without nested calls. The comparison is repeated with models fitted on all rank counts.
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
