"""Land files and databases, watch folders, query servers, and follow inputs as they grow.

A landing is an input as it was read once; a content hash identifies it.

- `landing` (`ReadOptions`, `Arrival`, `land_paths`, `make_reading`): Landing of files, folders and databases.
- `inbox` (`Inbox`, `follow`): A watched folder: each input lands once it is complete.
- `prometheus` (`land_prometheus`): Storage counters that a Prometheus server has scraped.
- `slurm` (`land_slurm`): Slurm's accounting records, and its running and pending jobs.
- `following/`: Inputs that are followed as they grow: each feed yields flushes and resumes from a position.
"""
