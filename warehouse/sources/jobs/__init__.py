"""Job logs, and what runs and waits: Slurm's accounting and queue, PBS, and the standard workload format.

- `host_lists` (`expand`): Lists of hosts as schedulers write them.
- `pbs`: PBS Professional, OpenPBS and Torque accounting records: `MM/DD/YYYY HH:MM:SS;TYPE;ID;key=value …`.
- `queue`: From the cells of what a scheduler says of jobs that run and wait to rows of `queue_records`.
- `records`: From the cells of any job log to rows of `job_records`: states, counts and times are read in one way.
- `sacct`: Slurm's `sacct --parsable2`: with a header of any fields in any order, or the two known forms without one.
- `sacct_json`: Slurm's `sacct --json`, as the data parsers of Slurm 21.08 to 24.x write it: jobs.
- `slurm_commands`: Slurm asked by its own commands: what `sacct` and `squeue` say is written to a file.
- `slurm_json`: Values in Slurm's JSON, whichever version wrote them: plain or wrapped, a word or a list of words.
- `squeue`: Slurm's `squeue --format`, fields parted by `|`: what runs and waits at one instant.
- `squeue_json`: Slurm's `squeue --json`, as Slurm 21.08 to 24.x write it: what runs and waits at one instant.
- `swf`: The Standard Workload Format, version 2.2: 18 numbers a job, `;` comments with a header.
- `wait_reasons` (`without_details`): Reasons for which Slurm lets a job wait.
"""
