"""Traces of request events, layer by layer.

- `rows`: Request events in any table: from its columns, text or typed, to checked rows, piece by piece.
- `source`: Request events: a table of what each layer of an I/O system did for each request, as text or Parquet.
"""
