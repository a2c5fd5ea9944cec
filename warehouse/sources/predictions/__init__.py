"""Write and read predictions of `iosig predict`.

- `lines` (`format_intervals`, `format_line`, `check_row`, `parse_line`): Predictions as JSON Lines.
- `source`: The format: lines that `iosig predict` prints, with one evaluation each.
"""
