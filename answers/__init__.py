"""Query a release, landed data or one input, with typed results.

- `advice/`: Where and when to start an application, and the feed for a scheduler.
- `attribution/`: Who moved the bytes of a file system, who was slowed down, and the unattributed rest.
- `documents` (`Document`, `Part`, `make_columns_schema`): The pydantic models of the `--json` output.
- `findings/`: Findings, layers, sizes and heat maps of traced runs.
- `forecast/`: The expected load of the next hours.
- `job/`: All data about one run.
- `moment/`: Live view of the file systems, up to the last landed poll.
- `opening/`: The Python interface, `iosig.open`.
- `population/`: How the runs of a site do their I/O: classes, periods, volumes.
- `predictions` (`Session`, `find_busiest`, `export_graph`, `read_rows`, `build_view`): Predictions of inputs.
- `report/`: A release as static pages.
- `reviews/`: Manual verification of classes and periods: drawn runs, and scores of the reviews.
- `signatures/`: The signature of an application, and its changes between releases.
- `site_check/`: What a site's logs cover, and what to configure or land next.
- `single/`: Analysis of one input without a warehouse, as in the nightly flow.
- `status/`: The condition of a warehouse, and its problems.
- `time_shifts` (`check_landings`, `check_release`): Warnings about job logs and polls with times that differ by hours.
- `top` (`rank_runs`, `build_document`): Users, accounts, applications and codes by the bytes of their runs.
- `wall/`: Overview figures of a release.
"""
