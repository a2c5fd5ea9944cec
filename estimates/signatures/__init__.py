"""Extract signatures from sample sets in batches, and read the signatures of a release.

- `parallel` (`extract_in_batches`, `select_chunk`): Extraction in batches.
- `published` (`read_signatures`, `defaults`): Signatures of a release.
"""
