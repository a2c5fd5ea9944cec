"""Forecasts: the load that is to come, by what runs and waits, and by what always comes without being told.

- `coming` (`Coming`, `drawn`, `Drawn`): When jobs that run or wait may start and end, and how they go.
- `collisions` (`collisions`, `Collisions`): Which applications' bursts are to be expected at one time, hour by hour.
- `forecasting` (`forecast`, `Forecast`, `ForecastParams`): The rate that is to be expected, with a range.
- `unknown` (`Past`, `drawn_unknown`): What will flow of which nobody knows yet, by what did in times alike.
"""
