"""The evaluation of the methods that extract signatures, reproducible from a seed: `iosig study signatures`.

- `backgrounds`: What others do while runs are under way: rates in seconds, in units of an application's peak.
- `bounds`: What is lost before any noise: runs do not compute equally long.
- `counted_page`: What signatures are like where servers count by job: beside shared traffic, and the bound.
- `edison`: Applications injected into real traffic: a day of Edison's scratch file system.
- `families`: Families of simulated sites that differ in what matters to signatures: all that they are, in one place.
- `family_page`: What the families say: the means of each, and of all of them.
- `figures`: Pictures of the study of signatures: accuracy as IOSI's Figure 16, sensitivity as Figures 17 and 18.
- `injected`: Runs among foreign traffic, each in a window of its own: sites of a family.
- `judging`: The judge of signatures is calibrated: evidence beside true correlations, on families held out.
- `methods`: The methods that are compared, by name, and the settings of `iosi` whose influence is studied.
- `page`: What the study of signatures shows: its page, and tables that fit a terminal.
- `running`: The study itself: draws sites, asks every method, and keeps a row for each signature.
- `scores`: How near signatures come to the truth: a row for each, with IOSI's yardsticks (section 6.3) and ours.
- `sites`: Where the study's samples come from: simulated sites whose applications are known, one sample set for each.
- `summary`: What the study's answers say: means and spreads, what was aimed at beside what was reached.
- `timing`: How long methods take, by the number of samples and by their length: IOSI's Figure 19.
"""

from iosig.studies.study import SEED, WORKERS, Study, file, parts, seeds

#: what can be asked for; real traffic is another one, where it is given
PARTS = ("levels", "families", "counted", "sweeps", "drift", "faults", "times")

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
        file(
            "--edison",
            "polls",
            "Polls of a real file system, in any format that can be landed: applications are put into its traffic.",
        ),
        parts(PARTS),
        WORKERS,
    ),
    part="parts",
)
