"""Counters that name the job, as collectors read them from storage servers.

- `changes` (`Changes`, `landed`, `wide`): What changed between one reading of a counter and the next within an input.
- `exposition` (`Exposition`): Prometheus' text format: from lines to values with their labels.
- `glljobstat`: What glljobstat logs as Parquet: Lustre's job statistics, summed over all servers that it asked.
- `influx_line`: Counters as Influx line protocol: Telegraf's lustre2, beegfs-mon, and what a site itself writes so.
- `jobstats`: Lustre's job statistics as `lctl get_param` prints them, many targets and snapshots in a file.
- `jobstats_entries` (`Entries`): Entries of job statistics: from their text to rows, all of a block at once.
- `jobstats_text` (`events`): The text of `lctl get_param`: headers, times, and the entries between them.
- `ldms_csv`: Counters as LDMS' store_csv writes them: a set of metrics a line, a schema a file.
- `line_protocol` (`points`, `Points`): Influx line protocol: from lines to points, all of a block at once.
- `metrics` (`columns_of`, `roles_of`, `meant`): Metrics by name and labels: what they count, of what, for whom.
- `mmpmon`: What `mmpmon -p` prints of a GPFS node: bytes and operations of each file system since it was mounted.
- `prometheus`: Counters as Prometheus has them: an exporter's text, or what the server's HTTP API answers.
- `prometheus_http` (`Server`): A Prometheus server asked by its HTTP API for counters, as it scraped them.
- `prometheus_json` (`read`): What Prometheus' HTTP API answers to `query` and `query_range`.
- `samples` (`batches`, `filesystems`, `said_time`): What all formats of counters share.
"""
