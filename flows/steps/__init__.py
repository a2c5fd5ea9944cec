"""The night's steps: records of work, and plain functions that do it a piece at a time.

What a step has built lies in the plan's own folder, one Parquet file per table and day. A piece that finds
its mark there has nothing to do, so a run that was killed goes on where it stopped and ends in the same
release. Work's records (`Work`) stand after the functions in their modules; `flows/night/order.py` has the steps.

- `checks` (`checked`, `check_pieces`, `hold`, `decide`, `gather_quarantine`, `gather_rejects`): Checks: every built
  table is held to its suite; what was taken out or refused is gathered.
- `classes` (`classify`, `series_classes`, `trace_classes`): Classes: when in its run each job, series, traced run
  or application does its I/O.
- `networks` (`make_networks`): Networks: who talked to whom in each traced run, window by window, what that looked
  like, and what held it up.
- `periods` (`find`, `judged_of`, `params_of`, `rows_from`): Periods: how often each job, series, traced run or
  application does its I/O, by every method.
- `pieces` (`Piece`, `Given`, `File`, `Done`): Pieces of work as data: which files each reads and writes, which
  function makes them, by which settings.
- `plan` (`Plan`, `make_plan`): What a run has to do: the days that new or replaced landings make stale, and no
  others.
- `predictions` (`land_journal`, `stage_predictions`): Predictions: what the journal holds is landed, and each day's
  become a table.
- `release` (`release`): The release: all that was built and checked becomes visible at once.
- `run` (`Run`, `Work`, `landed`, `landed_on_day`, `landed_of_traces`, `built`, `live`, `released`, `undated`): A plan
  at work: work as records, what it reads, and the pieces that a plan makes of it.
- `samples` (`count_applications`, `join_io`, `cut_samples`): Samples: each run's piece of its file system's
  traffic, and the applications that the runs are of.
- `signature_checks` (`check_signatures`): Signatures against the truth: where clients of an application's run were
  traced, what they moved themselves.
- `signatures` (`gather_sets`, `make_signatures`): Signatures: what each application does to storage, from the
  samples of its latest runs.
- `stage` (`stage_jobs`, `stage_polls`, `gather_extrapolations`): Stage: one truth per thing, out of all that was
  landed.
- `subjects` (`Subjects`, `application_subjects`, `series_subjects`, `traced_requests`, `traced_subjects`): Whose
  signals are judged: jobs, series, traced runs and applications, each with its bytes over time.
- `traces` (`stage_traces`, `trace_signals`): Traces: each traced run joined with its job, its modules
  counted, and its bytes as a signal over time.
"""
