"""How often what came was in the range of a forecast, on days that it had not seen: `iosig study forecast`.

- `page`: What the study of forecasts shows: its page, and tables.
- `running`: The study itself: draws sites, forecasts days that are held out by every way, and looks what came.
- `told`: What is known of a site at an instant: its past, its jobs, and their signatures.
- `ways`: Ways of forecasting: ours, and what one would do without it.
"""

from iosig.studies.study import SEED, WORKERS, Study, seeds

STUDY = Study(
    "forecast",
    "How often what came was in the range of a forecast.",
    """Measure how often the rate that came was in the 80 % range of a forecast, how wide ranges are, and how far off.

    Sites of several families are simulated; signatures, attribution and the past are those of three days, and the
    fourth one is forecast every two hours, six hours each time, with the jobs that run and wait by then. Beside it what
    one would do without jobs, or without a past.
    """,
    (seeds(5, "Sites of each family and level."), SEED, WORKERS),
)
