"""Signatures: extraction from many sample sets, and signatures as a release holds them.

- `parallel` (`extract_in_chunks`, `chunks_of`, `extract_each`): Signatures of many sample sets, in a process pool.
- `published` (`read_signatures`, `defaults`): Signatures as a release has them.
"""
