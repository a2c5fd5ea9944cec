"""Predictions: the period while a run goes on, when it changed, and when the next burst is due.

- `automaton`: The states of an application's I/O behaviour, and why it went from one to the next.
- `change_points` (`Detector`, `detector`): Changes in a sequence of periods, found while they are predicted.
- `intervals` (`FrequencyIntervals`): Frequency intervals from evaluation after evaluation.
- `predictor` (`OnlineParams`, `Predictor`, `Due`): The period of I/O phases while the run goes on.
- `pyramid` (`Pyramid`): Throughput pyramids: a subject's throughput while it grows.
"""
