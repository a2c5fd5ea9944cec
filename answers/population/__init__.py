"""How a site's runs do their I/O: shares of classes, periods and volumes, and how much of it is known for sure.

- `query` (`Asked`, `Population`, `population`): What `iosig population` counts in a release.
- `format` (`document`): The same for programs, and rows of its tables.
- `figure` (`view_of`): What the picture of it shows.
"""
