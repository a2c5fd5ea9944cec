"""Following files that grow.

- `files` (`FollowedFile`, `Piece`, `Position`): Following a file: what was appended to it since it was last read.
- `flushes` (`Flush`, `Moves`): What a followed input hands over at a time: the requests that are new.
"""
