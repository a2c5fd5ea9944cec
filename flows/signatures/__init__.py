"""Signatures, as the night extracts them and as releases have them.

- `changes` (`signature_changes`): How much each application's signature differs from one release to another.
- `parallel` (`extract_in_chunks`, `chunks_of`, `extract_each`): Signatures of many sample sets: over processes.
- `published` (`read_signatures`, `defaults`): Signatures as a release has them.
- `view` (`choose_application`, `Asked`, `view_of`): Which signature of a release is meant.
"""
