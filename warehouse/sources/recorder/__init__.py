"""Recorder's traces, in all their forms.

- `calls`: What every form of a Recorder trace becomes: rows of its calls, of its requests, and of the run itself.
- `files` (`opened`, `owned`, `is_in_archive`): The files of one Recorder trace, wherever they lie: in a folder.
- `grammar`: Recorder's grammars (`.cfg`): a rank's calls as Sequitur wrote them, rules with exponents.
- `parquet`: Recorder's own Parquet export (recorder2parquet): a file for each rank, a row for each call.
- `raw` (`opened`): Raw Recorder 2.5 traces: metadata, call signatures (`.cst`).
- `requests` (`forms`, `nested`): Reads and writes out of Recorder's calls: which file, where in it, how many bytes.
- `signatures` (`SignedRank`, `opened`, `outer`): Recorder traces without a row for each call.
- `source`: Recorder traces: every traced call of every rank, from the raw trace, its text or its Parquet export.
- `text`: What recorder2text prints: a file for each rank, a line for each call.
"""
