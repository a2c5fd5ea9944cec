"""Traces of request events, layer by layer.

- `rows`: Request events in any table: converts its columns, text or typed, to checked rows.
- `source`: The format: operations of each I/O layer per request, as text or Parquet.
"""
