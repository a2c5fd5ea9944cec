"""Following files that grow.

- `files` (`FollowedFile`, `Piece`, `Position`): Following a file: what was appended to it since the last read.
- `flushes` (`Flush`, `Moves`): New requests of a followed input.
"""
