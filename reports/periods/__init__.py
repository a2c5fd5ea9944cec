"""Draw the period search of one signal.

- `picture` (`draw`): The figure of one signal's period search: time series, spectrum, autocorrelation.
- `view` (`view_of`): The data behind that figure.
"""
