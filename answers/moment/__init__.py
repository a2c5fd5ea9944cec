"""A warehouse's file systems at this moment, as far as polls have landed: what flows, whose it is, what comes next.

- `bursts` (`Burst`, `coming_bursts`, `followed_bursts`): Bursts that are to begin next.
- `document` (`LiveDocument`, `document`): What there is to see, for programs.
- `query` (`Moment`, `FilesystemMoment`, `Lookout`): What there is to see, looked at again and again.
"""
