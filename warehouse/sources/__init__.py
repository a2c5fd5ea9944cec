"""Input formats, a room a family; a module here that has a `SOURCE` is a format that iosig can land.

- `protocol` (`Batch`, `Reading`, `Source`, `Head`): Input formats, one module each.
- `counters/`: Counters that name the job, as collectors read them from storage servers.
- `darshan/`: Darshan's logs.
- `dftracer/`: DFTracer's traces: a JSON line for each call, a file for each process.
- `events/`: Traces of request events, layer by layer.
- `extrapolations/`: Extrapolations, as `iosig extrapolate` records them, and compressed traces as files.
- `files/`: Files as they come: compressed, packed, or readable only by a library that may crash.
- `jobs/`: Job logs, and what runs and waits: Slurm's accounting and queue, PBS, and the standard workload format.
- `polls/`: Polls of storage controllers: CSV, Parquet, LMT's and TOKIO's own forms.
- `predictions/`: Predictions, as `iosig predict` tells them.
- `recorder/`: Recorder's traces, in all their forms.
- `rows/`: Rows of any format: parsed, checked, and refused with line, reason and remedy.
- `series/`: One job's or node's own series of bytes.
- `tmio/`: TMIO's traces, whole or while they grow.
"""
