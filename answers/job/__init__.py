"""Everything that is known of one run.

- `document` (`JobDocument`, `document`, `page_of`): The same for programs, and as a page.
- `query` (`ToldJob`, `of_release`, `of_trace`, `heat_view`): What a release, or a trace alone, has of a run.
"""
