"""Compress Recorder traces, extrapolate them to more ranks, and replay them.

- `extrapolation/`: Compression and extrapolation of traces, and their records.
- `replay/`: Replay of traced calls by real processes on real files (ScalaIOReplay).
"""
