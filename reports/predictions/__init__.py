"""One run's predictions and its automaton, as pictures.

- `automaton` (`draw`): The picture of a phase automaton: its states, what led from one to the next, and below their
  order in time.
- `picture` (`PredictionView`, `draw`): The picture of one run's predictions: what was measured, what was predicted
  when, from which time, and what came.
- `state_strips`: What pictures of a run over time share: its clock, what times can be drawn, strips of states and
  their colours.
"""
