"""Draw the predictions of one run, and its phase automaton.

- `automaton` (`draw`): The figure of a phase automaton: its states, the transitions between them, and their causes.
- `evaluations` (`PredictionView`): The evaluations of one run, prepared for drawing.
- `picture` (`draw`): The figure of one run's predictions, next to the measured throughput and bursts.
- `state_strips`: Common elements of figures over a run's time: its clock, strips of states and their colors.
"""
