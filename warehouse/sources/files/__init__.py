"""Open input files: plain, compressed, archived, or readable only by a library that may crash.

- `child` (`arrays_from_child`, `Arrays`, `read_printed_text`): Native readers in a child process.
- `foreign` (`refuse_foreign`): Cause of content without a format: a web page, an archive, messages before a document.
- `limits` (`Limits`, `current_limits`, `apply_limits`): Size limits of one input.
- `opening` (`open_decompressed`, `plain_file`, `read_head`, `content_hash`): Opening inputs: plain or compressed.
- `tar_stream` (`is_tar`, `TarStream`): Tar archives, read as a stream: nothing is unpacked to paths.
"""
