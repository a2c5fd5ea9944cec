"""What is asked for by itself, again and again: each time what is new lands, and where it was left is kept.

- `prometheus` (`land_prometheus`): Counters of storage that a Prometheus server has scraped.
- `slurm` (`land_slurm`): Slurm's accounting, and what runs and waits.
"""
