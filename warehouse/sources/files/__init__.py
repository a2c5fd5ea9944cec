"""Files as they come: compressed, packed, or readable only by a library that may crash.

- `child` (`arrays_from_child`, `Arrays`, `printed`): Native readers in a process of their own: a hostile file may
  crash it, and is then refused like any other.
- `opening` (`open_bytes`, `plain_file`, `read_head`, `content_hash`): Opening inputs: plain or compressed, recognized
  by content, never by name.
- `tarred` (`is_tar`, `TarStream`): Tar archives, read as a stream: nothing is unpacked to paths, and no header can
  ask for more than it may.
"""
