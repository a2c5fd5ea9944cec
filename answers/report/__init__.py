"""The report of a release: what is read of it, and how its pages are written.

- `advice` (`read`, `list_inputs`): Where and when applications should start.
- `applications` (`read`, `made_of`, `history_of`): Applications' signatures, curves, bursts and runs.
- `fingerprints` (`Inputs`, `program`): What pages are made of, as texts that differ where any of it does.
- `pseudonyms` (`Hider`, `hider_of`): Users as pseudonyms.
- `existing` (`Known`, `Page`): Pages that lie in a report already.
- `build` (`report`): A release as static pages.
- `night` (`read`): What a release says of its last day.
- `pages` (`of`, `Making`): Every page, made, or taken as it lies.
- `quality` (`read`, `failed_checks`): What a release says of the quality of its days.
- `runs` (`read_runs`, `read_population`, `read_filesystems`): Runs, and file systems with who was on them.
- `samples` (`coarse_samples`): Samples in fewer steps.
- `writing` (`write`, `locked`, `show`, `Written`): Reports as folders: one a release.
"""
