"""Files as they come: compressed, packed, or readable only by a library that may crash.

- `child` (`arrays_from_child`, `Arrays`, `printed`): Native readers in a process of their own.
- `limits` (`Limits`, `in_force`, `limited`): What one input may take.
- `opening` (`open_bytes`, `plain_file`, `read_head`, `content_hash`): Opening inputs: plain or compressed.
- `tarred` (`is_tar`, `TarStream`): Tar archives, read as a stream: nothing is unpacked to paths.
"""
