"""Read job logs and queues: Slurm's accounting and queue, PBS, Grid Engine, LSF, Flux, and others.

- `clustercockpit`: `meta.json` of ClusterCockpit's job archives: one job per file.
- `fields` (`Layout`): Splits lines of Slurm's commands into fields, at any separator.
- `flux`: Jobs of Flux: a JSON list, one JSON object, or JSON Lines.
- `host_lists` (`expand`): Lists of hosts as schedulers write them.
- `lsf`: LSF's `lsb.acct`: one record per line, fields separated by blanks, texts in quotes.
- `pbs`: PBS Professional, OpenPBS and Torque accounting records: `MM/DD/YYYY HH:MM:SS;TYPE;ID;key=value …`.
- `queue`: Builds rows of `queue_records` from the cells of a scheduler's queue.
- `records`: Builds rows of `job_records` from the cells of any job log.
- `sacct`: Slurm's `sacct --parsable2`: a header with any fields in any order, or two known forms without a header.
- `sacct_json`: Slurm's `sacct --json`, as the data parsers of Slurm 21.08 to 24.x write it: jobs.
- `sge`: Grid Engine's accounting (SGE, UGE, OCS): fields separated by `:`, or JSON Lines.
- `slurm_commands`: Runs `sacct` and `squeue`, and writes their output to a file.
- `slurm_completions`: Slurm's log of completed jobs (jobcomp/filetxt): `JobId=… UserId=…`, one job per line.
- `slurm_json`: Values in Slurm's JSON of any version: plain or wrapped, a word or a list of words.
- `squeue`: Slurm's `squeue --format`, fields with a separator: running and waiting jobs at one instant.
- `squeue_json`: Slurm's `squeue --json`, as Slurm 21.08 to 24.x write it: running and waiting jobs at one instant.
- `swf`: The Standard Workload Format, version 2.2: 18 numbers per job, `;` comments with a header.
- `wait_reasons` (`extract_code`): Slurm's codes of wait reasons.
"""
