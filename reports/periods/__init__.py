"""One signal's search for a period, as a picture.

- `picture` (`draw`): The picture of one signal's search for a period: time behaviour, spectrum, autocorrelation.
- `view` (`view_of`): What there is to see of one signal's search for a period, in the form that is drawn.
"""
