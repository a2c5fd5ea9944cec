"""Predict online the period of a running application, its changes, and the next burst.

- `automaton` (`PhaseAutomaton`): State machine of an application's I/O behavior.
- `change_points` (`Detector`, `create_detector`): Online change-point detection in a sequence of periods.
- `intervals` (`FrequencyIntervals`, `predict_next_burst`): Frequency intervals of successive evaluations.
- `predictor` (`OnlineParams`, `Predictor`, `Due`, `evaluate`): Period prediction after each batch of requests.
- `pyramid` (`Pyramid`): Multi-resolution throughput of a growing run, in bounded memory.
"""
