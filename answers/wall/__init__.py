"""What the figures for the wall show of a release.

- `storage_calendar` (`view_of`): What a file system moved, minute by minute of each day.
- `population_map` (`view_of`): How much applications move, and in how short bursts.
- `checkpoint_clock` (`view_of`): How often applications write how much, and which of them meet.
- `release_changes` (`view_of`): What is not the same in two releases' signatures.
"""
