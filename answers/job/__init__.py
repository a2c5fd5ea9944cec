"""Collect all data about one run.

- `document` (`JobDocument`, `build_document`, `build_page`): The JSON document and the HTML page.
- `query` (`JobReport`, `query_release`, `query_trace`, `build_heat_view`): Data of a run in a release or a trace.
"""
