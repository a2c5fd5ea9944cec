"""Synthetic sites: what users mean to do, what storage makes of it, and what a poll daemon sees.

- `contention` (`Chains`, `Pipe`, `Shared`, `share`): How transfers that share a bandwidth slow each other down.
- `entries` (`Changes`, `Targets`, `lives`, `are_seen`, `readings`): Entries of counters: when they live, and are read.
- `job_statistics` (`JobStatisticsParams`, `JobStatistics`, `count_jobs`): What a site's servers count by job.
- `job_statistics_texts` (`lctl_texts`): Job statistics as `lctl get_param` has them.
- `site` (`signature`, `SiteParams`, `Site`, `simulate`): A supercomputer's storage that never was: job log.
- `workload` (`Application`, `bursts`): What the users of a supercomputer mean to do to its storage.
"""
