"""Traces: every rank's calls, compressed, and what they add up to without being expanded.

- `checks`: Whether a compressed trace keeps what its form promises: what a damaged or hostile file may break.
- `compression` (`compress`, `compress_together`): Compression of traces as ScalaTrace does it: loops within a rank.
- `expansion` (`rank_calls`, `numbered`, `node_counts`, `place_in`): One rank's calls out of a compressed trace.
- `frames` (`to_frame`, `from_frame`): Compressed traces as one frame, a row for each node.
- `name_patterns`: Names that differ in numbers only, as one pattern: `/scratch/f.{00000000..00999999}`.
- `progressions` (`Progression`, `values`, `Listed`, `Stretch`): Whole numbers in a row as nested
  arithmetic progressions.
- `rank_blocks`: Blocks of ranks: parts of rank lists within which all values in question grow evenly from rank to
  rank.
- `requests` (`Forms`, `Form`): What the calls of a compressed trace do to files: the fields of their arguments.
- `templates` (`without_addresses`): Calls by what they have in common: the text of their arguments.
- `time_histograms` (`Bins`, `merged`): Times as histograms, as ScalaTrace keeps them: statistics and a few bins.
- `timelines` (`timeline`): The server's side of a compressed trace.
- `totals` (`Totals`, `totals`): What a compressed trace adds up to: calls, bytes and files of all ranks.
- `trace` (`CompressedTrace`, `Call`, `Node`, `Loop`): The trace of an SPMD program, compressed.
- `vectors` (`rank_lists`, `bounds_of`, `stretches_of`, `vector_of`): Rows of numbers and values by rank.
"""
