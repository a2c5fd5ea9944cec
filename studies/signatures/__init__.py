"""Accuracy of the signature extraction methods, reproducible from a seed: `iosig study signatures`.

- `backgrounds`: Background traffic during runs: rates per second, relative to an application's peak.
- `bounds`: Accuracy limits without noise, due to the variation of computing times between runs.
- `calibration`: Cross-validated calibration of the expected correlation.
- `edison`: Applications injected into measured traffic of Edison's scratch file system.
- `families`: Families of simulated sites, and all their parameters.
- `family_page`: Tables of the families.
- `figures`: Figures: accuracy as in IOSI's Figure 16, sensitivity as in Figures 17 and 18, time as in Figure 19.
- `injected`: Runs of a family's applications with background traffic, each in its own window.
- `job_counter_page`: Table of signatures from job-level counters, shared traffic, and the upper bound.
- `mechanisms`: Write-back caches, time limits and job arrays.
- `methods`: The compared methods by name, and the swept parameters of `iosi_filtered`.
- `page`: Template variables, tables and figures of the page.
- `published`: IOSI's evaluation on sites with their default drift, and the numbers that it states.
- `running`: The study itself: draws sites, runs every method, and keeps one row per signature.
- `scores`: Scores of signatures: the metrics of IOSI (section 6.3) and ours.
- `sites`: Samples from simulated sites with known applications, one sample set each.
- `summary`: Means and spreads of the scores, and the targets.
- `timing`: Run time of the methods by number and length of samples: IOSI's Figure 19.
"""

import click

from iosig.studies.study import SEED, WORKERS, Study, file_option, part_option, seed_count_option

#: results that `--part` can select; measured traffic is added if given
PARTS = ("levels", "families", "counted", "sweeps", "drift", "faults", "times", "published")

STUDY = Study(
    "signatures",
    "Accuracy of signature extraction, on simulated sites.",
    """Measure the similarity of every method's signatures to the truth, from samples of shared traffic.

    The applications are those of IOSI's evaluation (FAST'14, section 6), each run ten times within five days on a
    simulated site with other users, at three levels of their activity. The same seed gives the same results, except
    for the times.
    """,
    (
        seed_count_option(20, "Sites of each setting."),
        SEED,
        file_option(
            "--edison",
            "polls",
            "Measured polls of a file system, in any supported format; applications are injected into its traffic.",
        ),
        part_option(PARTS),
        click.Option(["--family", "families"], multiple=True, help="Draw only this family; repeatable. Default: all."),
        WORKERS,
    ),
    part="parts",
)
