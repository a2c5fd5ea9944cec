"""Coverage and width of forecast intervals on held-out days: `iosig study forecast`.

- `history`: The information on a site at an instant: its past, its jobs, and their signatures.
- `page`: Template variables and the figure of the page.
- `running`: The study itself: simulates sites, forecasts held-out days by every method, and scores the forecasts.
- `ways`: Methods of forecasting: `iosig forecast`, and baselines.
"""

from iosig.studies.study import SEED, WORKERS, Study, seed_count_option

STUDY = Study(
    "forecast",
    "Coverage and width of forecast intervals, on simulated sites.",
    """Measure coverage, width and error of forecasts with 80 % intervals.

    Sites of several families are simulated. Signatures and past traffic are those of three days; the fourth day is
    forecast every two hours for six hours, from the jobs running and waiting at the time. Baselines forecast without
    jobs or without the recent past.
    """,
    (seed_count_option(5, "Sites of each family and level."), SEED, WORKERS),
)
