"""Synthetic sites: what users mean to do, what storage makes of it, and what a poll daemon sees.

- `contention` (`Chains`, `Pipe`, `Shared`, `share`): How transfers that share a bandwidth slow each other down.
- `site` (`signature`, `SiteParams`, `Site`, `simulate`): A supercomputer's storage that never was: job log.
- `workload` (`Application`, `bursts`): What the users of a supercomputer mean to do to its storage.
"""
