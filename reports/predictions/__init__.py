"""One run's predictions and its automaton, as pictures.

- `automaton` (`draw`): The picture of a phase automaton: its states, what led from one to the next.
- `evaluations` (`PredictionView`): One run's evaluations, ready to be drawn.
- `picture` (`draw`): The picture of one run's predictions: what was measured.
- `state_strips`: What pictures of a run over time share: its clock, what times can be drawn.
"""
