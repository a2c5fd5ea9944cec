"""Draw the period search of one signal.

- `picture` (`draw`): The figure of one signal's period search: time series, spectrum, autocorrelation.
- `view` (`build_view`): The data behind that figure.
"""
