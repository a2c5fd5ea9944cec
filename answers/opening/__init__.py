"""The Python interface: a warehouse and its releases, with tables, answers and pictures.

- `release` (`open_warehouse`, `OpenedRelease`, `Warehouse`): What `iosig.open` returns.
"""
