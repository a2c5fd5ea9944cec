"""Rows of any format: parsed, checked, and refused with line, reason and remedy.

- `counters` (`words`, `Marks`, `confirmed`): Cumulative counters: from readings to what was moved between them.
- `delimited` (`split_lines`, `Header`): Delimited text: from lines to cells, all lines of a block at once.
- `documents` (`MalformedError`, `text`, `flag`): Values of JSON documents, each held to what it should be.
- `engine` (`Engine`): DuckDB for one input: many lines at once, and sorting on disk.
- `faults` (`sift`, `held_to`, `Fault`): What is wrong with a row, said in one sentence.
- `json_items` (`items`): Items of a long list in a JSON document, one after the other.
- `log_lines` (`blocks`): Lines of a text log in blocks of bounded size, each line with the header that holds for it.
- `rejects` (`Sifted`, `refused_rows`, `rejects`): Refused rows: one way to make them, so that all look alike.
- `tables` (`text_pieces`, `parquet_pieces`): Tables as delimited text or Parquet, piece by piece.
- `text_blocks` (`blocks`, `lines`, `cells`, `read_header`): Text in blocks of whole lines, and its cells.
- `times` (`require_zone`, `parse`, `in_range`): Times in job logs: from text to UTC instants and durations.
- `traced` (`rows`, `Numbering`, `record_columns`): What all readers of traces share.
"""
