"""What is followed while it grows: each feed hands over flushes, and goes on from a position after a restart.

- `followed` (`Followed`): One followed input: what it hands over, its clock, its predictors.
- `follower` (`Follower`): Following many inputs in one process: what is new is judged together, kept, and told.
- `inputs` (`Opener`, `Folder`, `AskedPolls`): What is to be followed: traces, folders of traces.
- `jobs`: Which running job is meant, by the landed job logs.
- `lmt`: An LMT database polled live, as flushes.
- `merged_polls`: Polls of one file system as flushes: controllers of one poll time together, each poll counted once.
- `polls`: Landed polls of a job that runs, as flushes; and what all feeds of polls have in common.
- `rows` (`Circumstances`, `Identity`, `row_of`, `Row`): Evaluations of followed inputs as rows of `predictions`.
- `seen_polls`: Which controllers' polls were counted at which instants.
"""
