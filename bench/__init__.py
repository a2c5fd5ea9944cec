"""Benchmarks: each beside its peer or its physical limit, in one run, as a ratio."""
