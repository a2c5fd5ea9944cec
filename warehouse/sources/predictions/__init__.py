"""Predictions of `iosig predict`.

- `lines` (`format_intervals`, `format_line`, `check_row`, `parse_line`): Predictions as JSON Lines.
- `source`: Predictions: the lines that `iosig predict` prints, one evaluation each.
"""
