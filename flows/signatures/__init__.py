"""Signatures, as the night extracts them and as releases have them.

- `changes` (`signature_changes`): How much each application's signature differs from one release to another.
- `parallel` (`extract_in_chunks`, `chunks_of`, `extract_each`): Signatures of many sample sets: over processes,
  some sets at a time, with the same answers however many there are.
- `published` (`read_signatures`, `defaults`): Signatures as a release has them, read back into the form in which
  methods return them.
- `view` (`choose_application`, `Asked`, `view_of`): Which signature of a release is meant, and what there is to see
  of it.
"""
