"""Following files that grow.

- `files` (`FollowedFile`, `Piece`, `Position`): Following a file: what was appended to it since it was last read,
  whatever happened to it in between.
- `flushes` (`Flush`, `Moves`): What a followed input hands over at a time: the requests that are new, and up to
  when all is known.
"""
