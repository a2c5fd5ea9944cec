"""Signatures: extraction from many sample sets, and signatures as a release holds them.

- `parallel` (`extract_in_batches`, `part_of`): Signatures of many sample sets, some at a time.
- `published` (`read_signatures`, `defaults`): Signatures as a release has them.
"""
