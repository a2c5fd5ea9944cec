"""Read reviews of classes and periods.

- `source`: The format: delimited text that the page of `iosig verify-classes` saves.
"""
