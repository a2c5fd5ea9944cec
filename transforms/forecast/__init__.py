"""Forecasts of a file system's load: traffic of running and waiting jobs, and traffic that is still unknown.

- `collisions` (`find_collisions`, `Collisions`): Expected overlap of the bursts of two applications.
- `forecasting` (`forecast`, `Forecast`, `ForecastParams`): Expected rate and its range, by Monte Carlo.
- `unknown_traffic` (`TrafficHistory`, `draw_unknown_traffic`): Traffic that no known job explains, drawn from similar
  past instants.
- `upcoming_jobs` (`UpcomingJobs`, `draw_jobs`, `JobDraws`): Start, end and progress of running and waiting jobs.
"""
