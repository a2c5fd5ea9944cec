"""All that is known of one run.

- `telling` (`ToldJob`, `of_release`, `of_trace`, `document`, `page_of`): What a release, or a trace alone, tells of it.
"""
