"""Coverage and width of forecast intervals on held-out days: `iosig study forecast`.

- `history`: What is known of a site at an instant: its past, its jobs, and their signatures.
- `page`: Template variables and the figure of the page.
- `running`: The study itself: simulates sites, forecasts held-out days by every way, scores the forecasts.
- `ways`: Ways of forecasting: `iosig forecast`, and baselines.
"""

from iosig.studies.study import SEED, WORKERS, Study, seed_count_option

STUDY = Study(
    "forecast",
    "How often what came was in the range of a forecast.",
    """Measure how often the rate that came was in the 80 % range of a forecast, how wide ranges are, and how far off.

    Sites of several families are simulated; signatures, attribution and the past are those of three days, and the
    fourth one is forecast every two hours, six hours each time, with the jobs that run and wait by then. Beside it what
    one would do without jobs, or without a past.
    """,
    (seed_count_option(5, "Sites of each family and level."), SEED, WORKERS),
)
