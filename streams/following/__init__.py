"""Follow growing inputs: each feed yields flushes, and resumes from a saved position after a restart.

A flush is a batch of new data: the requests that a tracer writes together, or the polls of one or more instants.

- `followed` (`FollowedInput`): One followed input: its feed, clock and predictors.
- `follower` (`Follower`): Batched evaluation, commits and notifications for many inputs in one process.
- `inputs` (`Opener`, `Folder`, `AskedPolls`): Opening of inputs: traces, folders of traces, polls.
- `jobs`: Selection of a running job by the landed job logs.
- `lmt`: Live polls of an LMT database, as flushes.
- `merged_polls`: Polls of one file system as flushes, grouped by poll time, with each poll counted once.
- `polls`: Landed polls of a running job, as flushes; and the base class of all feeds of polls.
- `rows` (`Circumstances`, `Identity`, `format_row`, `Row`): Evaluations of followed inputs as rows of `predictions`.
- `seen_polls`: Record of the controllers with counted polls, by instant.
"""
