"""Everything that is known of one run.

- `query` (`ToldJob`, `of_release`, `of_trace`, `document`, `page_of`): What a release, or a trace alone, has of a run.
"""
