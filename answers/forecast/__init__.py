"""Forecast load: running and waiting jobs from their signatures, all other traffic from its history.

- `query` (`Query`, `ForecastResult`, `forecast_load`, `build_document`, `build_view`): `iosig forecast`: the expected
  rate and its range.
- `jobs` (`JobAhead`, `find_jobs_ahead`, `prepare_jobs`): Jobs that run and wait on a file system, and the durations and
  waiting times of similar jobs.
- `past` (`build_history`, `Minutes`): Unattributed traffic of the preceding days.
- `what_if` (`build_what_if_job`): The demand of a trace, measured or extrapolated.
"""
