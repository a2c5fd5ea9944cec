"""What is followed while it grows: each feed hands over flushes, and goes on from a position after a restart.

- `drawing` (`busiest`, `graph_of`, `rows_of`, `view_of`): What to draw of predictions: the rows as they were told,
  the rate as far as it is kept, the automaton.
- `followed` (`Followed`): One followed input: what it hands over, its clock, and a predictor for each direction of
  its runs.
- `follower` (`Follower`): Following many inputs in one process: what is new is judged together, kept, and told.
- `inputs` (`Opener`, `Folder`, `AskedPolls`): What is to be followed: traces, folders of traces, landed polls of a
  job, an LMT database; each ready to go on.
- `jobs`: Which running job is meant, by the landed job logs: since when it runs, on which file systems, and whether
  it ended.
- `lmt`: An LMT database polled live, as flushes: what the counters of a file system's targets rose since the last
  look.
- `merged_polls`: Polls of one file system as flushes: controllers of one poll time together, each poll counted
  once.
- `polls`: Landed polls of a job that runs, as flushes; and what all feeds of polls have in common.
- `rows` (`Circumstances`, `Identity`, `row_of`, `Row`): Evaluations of followed inputs as rows of `predictions`.
- `seen_polls`: Which controllers' polls were counted at which instants: few runs of even steps where the polls come
  evenly.
"""
