"""The figures for the wall: what a storage lead sees from the door. Who moved the bytes is `iosig.reports.attribution`.

- `storage_calendar` (`CalendarView`, `draw`): What a file system moved, minute of the day by day.
- `population_map` (`MapView`, `DrawnApplication`, `draw`): How much applications move, and in how short bursts.
- `checkpoint_clock` (`ClockView`, `DrawnRhythm`, `Meeting`, `draw`): How often applications write how much.
- `release_changes` (`ChangesView`, `DrawnChange`, `draw`): What changed of signatures and periods.
- `names` (`name_points`): Names beside points, none over another.
"""
