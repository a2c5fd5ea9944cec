"""Unnamed patterns: what moves a file system's bytes again and again, and is in no job log.

- `alike` (`Kinds`, `alike`): Kinds of bursts: more of one volume and width than chance brings together.
- `beside` (`Beside`, `beside`): Whose runs were there each time a pattern appeared, and how likely that is by chance.
- `leftover` (`left_over`): What is left of traffic when what is explained and what flows always are gone.
- `left_bursts` (`LeftBursts`, `left_bursts`): Bursts of what is left.
- `patterns` (`Pattern`, `find`): Patterns: kinds of bursts that come again, alone or together.
- `recognized` (`Known`, `recognized`): Which patterns are those of before.
"""
