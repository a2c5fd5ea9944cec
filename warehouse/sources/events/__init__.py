"""Read traces of request events, layer by layer.

- `rows`: Conversion of any table of request events, text or typed, to checked rows.
- `source`: The format: operations of each I/O layer per request, as text or Parquet.
"""
