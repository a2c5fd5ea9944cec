"""Draw the wall figures: overviews for storage operators, readable from a distance.

`iosig.reports.attribution` draws the related figure of attributed traffic.

- `storage_calendar` (`CalendarView`, `draw`): Traffic of a file system by day and minute of the day.
- `population_map` (`MapView`, `DrawnApplication`, `draw`): Volume and burstiness of applications.
- `checkpoint_clock` (`ClockView`, `DrawnRhythm`, `Meeting`, `draw`): Checkpoint intervals and sizes.
- `release_changes` (`ChangesView`, `DrawnChange`, `draw`): Changed signatures and periods.
- `point_labels` (`name_points`): Point labels without overlap.
"""
