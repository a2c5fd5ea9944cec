"""Build the HTML report of a release: query the data, build changed pages, and write them atomically.

- `advice` (`read`, `list_inputs`): Advice for the largest applications.
- `applications` (`read`, `fingerprint_applications`, `read_history`): Signatures, curves, bursts and runs of
  applications.
- `fingerprints` (`Inputs`, `hash_program`): Fingerprints of the inputs of pages.
- `pseudonyms` (`Pseudonymizer`, `create_pseudonymizer`): Pseudonyms instead of user names.
- `existing` (`PageCache`, `Page`): Reuse of unchanged pages of an earlier report.
- `build` (`report`): Entry point: writes a release as static pages.
- `night` (`read`): The last day of a release.
- `pages` (`build_pages`, `PageBuilder`): All pages, built or reused.
- `quality` (`read`, `read_check_failures`): Data quality of the days.
- `runs` (`read_runs`, `read_population`, `read_filesystems`): Runs, and file systems with their runs.
- `samples` (`downsample`): Samples in fewer steps.
- `writing` (`write`, `lock`, `set_latest`, `WriteSummary`): Report folders, one per release.
"""
