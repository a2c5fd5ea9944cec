"""Who moved what of a file system's traffic, by a release or by what has landed since.

- `query` (`Asked`, `Answer`, `who`, `document`): `iosig who`: jobs, users and applications by bytes, and what nobody
  explains.
- `slowdowns` (`SlowdownAnswer`, `slowed`, `slowdown_document`): `iosig slowdowns`: whose bursts took longer, and
  who interfered.
- `landed` (`open_tables`, `Landed`): The tables that both query, of a release or computed from landed inputs.
- `candidates` (`likely_moved`): Which runs are likely to have moved most of what nobody explains.
- `figure` (`view_of`): What the picture of an answer shows.
- `patterns` (`unattributed_patterns`, `document`): `iosig patterns`: recurring patterns in unattributed traffic.
"""
