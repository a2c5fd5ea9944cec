"""WHEN: the night and its steps, the `iosig` command, settings. Thin: a step calls one function of a room below.

- `arrays` (`floats`, `ints`, `epoch_s`, `ragged`, `list_column`): From frame columns to arrays and back.
- `demo` (`TrueSignature`, `classes_truth`, `shipped_logs`): A simulated machine's logs, and its truth.
- `demo_site` (`demo_site`, `Collision`, `collision`, `traced_job_id`): What the demo plants in its site.
- `demo_trace` (`write_trace`): A Darshan log of a simulated run.
- `faults` (`machine_fault`): Whose fault it is: what libraries raise, as one sentence with a remedy.
- `inbox` (`Inbox`, `follow`): A folder that is watched: what arrives in it is landed once it is whole.
- `landing` (`Told`, `Arrival`, `land_paths`, `reading_of`): Landing many inputs: files, folders and databases.
- `prefect_server` (`PrefectServer`): The Prefect server of a warehouse: its address, its password, its process.
- `processes` (`Pool`, `pool`, `workers`, `WorkerLost`): Processes that work side by side: started fresh.
- `setting_values` (`with_group`, `time_zone`, `cron_line`): What single settings have to be.
- `settings` (`Settings`, `load`, `AdviceSettings`): What a site says about itself: one TOML file, read once.
- `storage_settings` (`StorageSettings`, `PrivacySettings`, `CatalogueSettings`): Settings of what a warehouse keeps.
- `stopping` (`Stop`, `stopped_by_signals`, `interrupted_by`, `signal_errors_kept`): Stopping in order.
- `time_shifts` (`landed_warnings`, `released_warnings`): Warnings about job logs and polls whose times differ by hours.
- `trust` (`read_settings_file`): Whether a settings file may name programs: only its user may be able to write it.
- `advice/`: Advice on where and when to start, and what a scheduler is told.
- `attribution/`: Who moved what of a file system's traffic, as a release tells it.
- `findings/`: What traced runs tell of their I/O, and what is wrong with it.
- `job/`: All that is known of one run.
- `forecast/`: The load to come: what runs and waits, by signatures, and what nobody knows yet, by the past.
- `population/`: How a site's runs do their I/O: classes, periods, volumes, and how much of it is known for sure.
- `command/`: The `iosig` command: prints results on stdout and progress on stderr.
- `extrapolation/`: Compression and extrapolation of Recorder traces, and the records that are made of it.
- `following/`: What is followed while it grows: each feed hands over flushes.
- `live/`: What is asked for by itself, again and again.
- `moment/`: A warehouse's file systems at this moment: what flows, whose it is, what comes next.
- `networks/`: Networks of traced runs, out of landed requests.
- `night/`: The night: its order, inline and under Prefect.
- `report/`: The report of a release: what is read of it, and how its pages are written.
- `replay/`: Replay of traced calls by real processes on real files (ScalaIOReplay).
- `signatures/`: Signatures, as the night extracts them and as releases have them.
- `single/`: One input, no warehouse: read and judged as the night would.
- `steps/`: The night's steps: plain functions, each of which leaves its results as files and can be run again.
- `wall/`: What the figures for the wall show of a release.
- `watch/`: How a warehouse fares: what is landed and released, what is wrong, and who is told of it.
"""

import os

# No library that runs under iosig may call home; set before any of them is imported.
os.environ.setdefault("DO_NOT_TRACK", "1")
os.environ.setdefault("PREFECT_SERVER_ANALYTICS_ENABLED", "false")
os.environ.setdefault("GX_ANALYTICS_ENABLED", "false")
