"""Inputs: landing of files and databases, watched folders, polled servers, and traces that are followed as they grow.

- `landing` (`Told`, `Arrival`, `land_paths`, `reading_of`): Landing many inputs: files, folders and databases.
- `inbox` (`Inbox`, `follow`): A watched folder: each input lands once it is complete.
- `prometheus` (`land_prometheus`): Storage counters that a Prometheus server has scraped.
- `slurm` (`land_slurm`): Slurm's accounting, and its running and pending jobs.
- `following/`: Inputs that are followed as they grow: each feed yields flushes and resumes from a position.
"""
