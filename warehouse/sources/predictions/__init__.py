"""Predictions, as `iosig predict` tells them.

- `lines` (`intervals_text`, `line_of`, `checked_row`, `row_of`): Predictions as JSON Lines.
- `source`: Predictions: the lines that `iosig predict` prints, one evaluation each.
"""
