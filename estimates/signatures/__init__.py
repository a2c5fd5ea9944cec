"""Signatures: extraction from sample sets in batches, and reading from a release.

- `parallel` (`extract_in_batches`, `part_of`): Extraction in batches.
- `published` (`read_signatures`, `defaults`): Signatures of a release.
"""
