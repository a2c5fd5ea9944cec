"""The evaluation of the methods that extract signatures, reproducible from a seed: `iosig study signatures`."""

from pathlib import Path

import click

from studies.study import SEED, WORKERS, Study, seeds

#: what can be asked for; real traffic is another one, where it is given
PARTS = ("levels", "sweeps", "drift", "faults", "times")

STUDY = Study(
    "signatures",
    "How near signatures come to the truth, on simulated sites.",
    """Measure how near every method's signatures come to the truth, from the samples of a shared system.

    The applications are those of IOSI's evaluation (FAST'14, section 6), each run ten times within five days on a
    simulated site with other users, at three levels of their activity. The same seed gives the same results, but for
    the times.
    """,
    (
        seeds(20, "Sites of each setting that are drawn."),
        SEED,
        click.Option(
            ["--edison", "polls"],
            type=click.Path(path_type=Path, exists=True, dir_okay=False),
            help="Polls of a real file system, in any format that can be landed: applications are put into its "
            "traffic.",
        ),
        click.Option(
            ["--part", "parts"],
            multiple=True,
            type=click.Choice(PARTS),
            help="Only this result; can be given several times. All of them if not given.",
        ),
        WORKERS,
    ),
    part="parts",
)
