"""Read input formats, with one package per family; a module with a `SOURCE` defines a format that iosig can land.

- `protocol` (`Batch`, `Reading`, `Source`, `Head`): The interface of input formats.
- `counters/`: Cumulative counters per job or target, as collectors read them from storage servers.
- `darshan/`: Darshan's logs.
- `dftracer/`: DFTracer's traces: one JSON line per call, one file per process.
- `events/`: Traces of request events, layer by layer.
- `extrapolations/`: Extrapolations, as `iosig extrapolate` records them, and compressed traces as files.
- `files/`: Opening of input files: compressed, archived, or readable only by a library that may crash.
- `jobs/`: Job logs and queues: Slurm's accounting and queue, PBS, Grid Engine, LSF, Flux, and others.
- `polls/`: Polls of storage controllers: CSV, Parquet, and the formats of LMT and TOKIO.
- `predictions/`: Predictions of `iosig predict`.
- `recorder/`: Recorder's traces: raw, as text, or as Parquet.
- `reviews/`: Reviews of classes and periods, saved by the page of `iosig verify-classes`.
- `rows/`: Rows of any format: parsed, checked, and refused with line, reason and remedy.
- `series/`: Time series of the bytes of one job or node.
- `tmio/`: TMIO's traces, complete or growing.
"""
