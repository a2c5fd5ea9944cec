"""Attribute a file system's traffic, from a release or from inputs that landed after it.

- `query` (`Query`, `Answer`, `who`, `build_document`): `iosig who`: jobs, users and applications by bytes, and the
  unattributed rest.
- `slowdowns` (`SlowdownAnswer`, `find_slowdowns`, `build_slowdown_document`): `iosig slowdowns`: delayed runs,
  and who interfered.
- `landed` (`open_tables`, `LandedTraffic`): The tables that both query, of a release or computed from landed inputs.
- `candidates` (`estimate_run_bytes`): Runs that are likely to have moved the unattributed bytes.
- `figure` (`build_view`): Figure data of an answer.
- `patterns` (`find_patterns`, `build_document`): `iosig patterns`: recurring patterns in unattributed traffic.
"""
