"""Benchmark iosig: each measurement is compared with a peer or a physical limit in the same run, as a ratio."""
