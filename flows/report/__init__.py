"""The report of a release: what is read of it, and how its pages are written.

- `applications` (`read`, `history_of`): Applications' signatures, curves, bursts and runs.
- `changes` (`read`): What a release changed against the one on which it builds.
- `hiding` (`Hider`, `hider_of`): Users as pseudonyms.
- `making` (`report`, `after_release`): A release as static pages.
- `night` (`read`): What a release says of its last day.
- `quality` (`read`, `failed_checks`): What a release says of the quality of its days.
- `runs` (`read_runs`, `read_population`, `read_filesystems`): Runs, and file systems with who was on them.
- `samples` (`coarse_samples`): Samples in fewer steps.
- `writing` (`write`, `show`, `Written`): Reports as folders: one a release.
"""
