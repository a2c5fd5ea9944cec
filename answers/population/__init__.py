"""Summarize the I/O of all runs of a site: classes, periods and volumes, and their sources.

- `query` (`Query`, `Population`, `read_population`): Statistics of the runs in a release.
- `format` (`build_document`): The JSON document, and rows of the printed tables.
- `figure` (`build_view`): Figure data.
"""
