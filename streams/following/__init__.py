"""Following growing inputs: each feed yields flushes, and resumes from a saved position after a restart.

- `followed` (`Followed`): One followed input: its feed, clock and predictors.
- `follower` (`Follower`): Following many inputs in one process: batched evaluation, commits and notifications.
- `inputs` (`Opener`, `Folder`, `AskedPolls`): Opening inputs: traces, folders of traces, polls.
- `jobs`: Selection of a running job by the landed job logs.
- `lmt`: An LMT database polled live, as flushes.
- `merged_polls`: Polls of one file system as flushes, grouped by poll time, with each poll counted once.
- `polls`: Landed polls of a running job, as flushes; and the base class of all feeds of polls.
- `rows` (`Circumstances`, `Identity`, `row_of`, `Row`): Evaluations of followed inputs as rows of `predictions`.
- `seen_polls`: Which controllers' polls were counted at which instants.
"""
