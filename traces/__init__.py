"""Recorder traces: compressed, extrapolated to more ranks, and replayed.

- `extrapolation/`: Compression and extrapolation of traces, and their records.
- `replay/`: Replay of traced calls by real processes on real files (ScalaIOReplay).
"""
