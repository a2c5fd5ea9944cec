"""Follow files that grow.

- `files` (`FollowedFile`, `Piece`, `Position`): Incremental reading of a growing file.
- `flushes` (`Flush`, `Moves`): New requests of a followed input.
"""
