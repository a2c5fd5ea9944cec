"""Parse and check rows of any format; refused rows get a line, a reason and a remedy.

- `counters` (`decode_flags`, `Marks`, `confirm_increases`): Deltas of cumulative counters, and their flags.
- `delimited` (`split_lines`, `Header`): Delimited text: splits lines into cells, block by block.
- `documents` (`MalformedError`, `text`, `flag`): Type checks of JSON values.
- `engine` (`InputDatabase`): A DuckDB connection for one input, which parses many lines at once and sorts on disk.
- `faults` (`sift`, `validate_rows`, `Fault`): Row checks, each with a reason and a remedy.
- `field_use` (`record_fields`, `note_fields`): Fields that readers take and ignore.
- `json_items` (`items`, `members`): Streams the items of a long JSON list, or the members of a JSON object.
- `log_lines` (`blocks`): Lines of a text log in blocks of bounded size, each line with the header that applies to it.
- `rejects` (`ParsedRows`, `build_refused_rows`, `rejects`): Refused rows with line, reason and remedy.
- `tables` (`text_pieces`, `parquet_pieces`): Tables in delimited text or Parquet, read in pieces.
- `text_blocks` (`blocks`, `lines`, `cells`, `read_header`): Text in blocks of whole lines, and its cells.
- `times` (`require_zone`, `parse`, `in_range`): Conversion of text in job logs to UTC instants and durations.
- `traced` (`build_batch`, `Numbering`, `record_columns`): Rows of the trace tables, shared by all trace readers.
"""
