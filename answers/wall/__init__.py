"""Build the data of the overview figures of a release.

- `storage_calendar` (`build_view`): Rate of a file system in each minute of each day.
- `population_map` (`build_view`): Volume and burstiness of applications.
- `checkpoint_clock` (`build_view`): Periods and volumes of applications' writes, and expected collisions.
- `release_changes` (`build_view`): Differences between the signatures of two releases.
"""
