"""Simulate sites: the I/O that users plan, its contention on shared storage, and the polls that record it.

- `contention` (`Chains`, `SharedBandwidth`, `SharingResult`, `simulate_sharing`): Transfers that share a bandwidth.
- `entries` (`Changes`, `Targets`, `find_lifetimes`, `mark_observed`, `read_entries`): Lifetimes of counters.
- `job_statistics` (`JobStatisticsParams`, `JobStatistics`, `count_jobs`): Lustre job statistics of a site.
- `job_statistics_texts` (`format_lctl`): Job statistics in the format of `lctl get_param`.
- `polls` (`Faults`, `simulate_arrivals`, `split_polls`): Bytes per controller, and faults of polls.
- `site` (`signature`, `SiteParams`, `Site`, `simulate`): Job log, polls and ground truth of a site.
- `workload` (`Application`, `bursts`, `make_plans`): Planned I/O of applications and other users.
"""
