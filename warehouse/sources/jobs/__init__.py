"""Job logs: Slurm's accounting, PBS, and the standard workload format.

- `pbs`: PBS Professional, OpenPBS and Torque accounting records: `MM/DD/YYYY HH:MM:SS;TYPE;ID;key=value …`.
- `records`: From the cells of any job log to rows of `job_records`: states, counts and times are read in one way.
- `sacct`: Slurm's `sacct --parsable2`: with a header of any fields in any order, or the two known forms without one.
- `sacct_json`: Slurm's `sacct --json`, as the data parsers of Slurm 21.08 to 24.x write it: jobs.
- `slurm_commands`: Slurm asked by its own commands: what `sacct` says is written to a file, to be read as a log is.
- `swf`: The Standard Workload Format, version 2.2: 18 numbers a job, `;` comments with a header.
"""
