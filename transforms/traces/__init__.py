"""Compress traces of the calls of all ranks, and compute totals without expansion.

- `checks` (`check`): Validate compressed traces from damaged or hostile files.
- `compression` (`compress`, `compress_together`): Compress traces as ScalaTrace does: loops within a rank, vectors
across ranks.
- `expansion` (`rank_calls`, `number_nodes`, `count_executions`, `find_index`): Expand a single rank's calls.
- `frames` (`to_frame`, `from_frame`): Compressed traces as one frame, one row per node.
- `name_patterns` (`group_by_pattern`): File names that differ in numbers only: `/scratch/f.{00000000..00999999}`.
- `progressions` (`Progression`, `expand_values`, `NumberList`, `Stretch`): Integer sequences as nested arithmetic
  progressions.
- `rank_blocks` (`divide_ranks`, `find_block`): Blocks of ranks within which all values are linear in the rank.
- `requests` (`CallFormats`, `CallFormat`): Arguments of I/O calls: files, sizes, nesting.
- `templates` (`find_templates`, `mask_addresses`): Calls with equal argument text except for numbers.
- `time_histograms` (`Bins`, `merge_histograms`): Times as statistics and a few bins.
- `timelines` (`compute_timeline`): Bytes of all ranks over time.
- `totals` (`Totals`, `compute_totals`): Calls, bytes and files of all ranks.
- `trace` (`CompressedTrace`, `Call`, `Node`, `Loop`): Data structures of a compressed trace.
- `vectors` (`rank_lists`, `vector_bounds`, `fold_numbers`, `fold_values`): Folding of values into progressions.
"""
