"""Read cumulative counters per job or target, as collectors read them from storage servers.

- `changes` (`Changes`, `build_change_batches`, `pivot_points`): Changes between consecutive readings of a counter.
- `exposition` (`Exposition`): Parser of Prometheus' text format.
- `glljobstat`: glljobstat's Parquet logs: Lustre's job statistics, summed over all servers.
- `influx_line`: Counters as Influx line protocol: Telegraf's lustre2, beegfs-mon, and a site's own counters.
- `job_shares` (`JobShares`, `build_share_batches`): Shares of jobs in the counters of their nodes.
- `jobstats`: Lustre's job statistics as `lctl get_param` prints them, with many targets and snapshots per file.
- `jobstats_entries` (`Entries`): Parser of job statistics entries, block by block.
- `jobstats_text` (`parse_events`): Tokenizer for the text of `lctl get_param`: headers, times and entries.
- `ldms_csv`: Counters as LDMS' store_csv writes them, with a set of metrics per line and a schema per file.
- `ldms_lustre2`: Counters of LDMS' sampler lustre2_client: all Lustre mounts of a node per line, in total and by job.
- `line_protocol` (`parse_points`, `Points`): Parser of Influx line protocol, block by block.
- `metrics` (`map_metrics`, `map_labels`, `select_counted_series`): Mapping of metrics and labels to iosig's columns.
- `mmpmon`: `mmpmon -p` of a GPFS node: bytes and operations per file system since its mount.
- `pmrep`: `pmrep -o csv` of Performance Co-Pilot archives: counters or rates of a node's file systems and disks.
- `prometheus`: Counters from Prometheus: an exporter's text, or responses of the HTTP API.
- `prometheus_http` (`Server`): Client of a Prometheus server's HTTP API.
- `prometheus_json` (`read`): Responses of Prometheus' HTTP API to `query` and `query_range`.
- `samples` (`build_sample_batches`, `find_filesystems`, `parse_time_in_name`): Functions that all counter formats
  share.
- `tacc_stats`: Raw files of TACC Stats: counters of a node's Lustre mounts, with the node's job.
"""
