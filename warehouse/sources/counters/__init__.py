"""Counters that name the job, as collectors read them from storage servers.

- `jobstats`: Lustre's job statistics as `lctl get_param` prints them, many targets and snapshots in a file.
- `jobstats_entries` (`Entries`): Entries of job statistics: from their text to rows, all of a block at once.
- `jobstats_text` (`events`): The text of `lctl get_param`: headers, times, and the entries between them.
- `samples` (`batches`, `filesystems`, `said_time`): What all formats of counters share.
"""
