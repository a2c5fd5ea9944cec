"""The settings of a site: one TOML file, validated.

- `model` (`Settings`, `load`, `AdviceSettings`): All sections of the settings file.
- `renaming` (`has_former_names`, `rename_settings`): Conversion of settings files with former names.
- `storage` (`StorageSettings`, `PrivacySettings`, `CatalogueSettings`): Settings of what a warehouse keeps.
- `values` (`with_group`, `time_zone`, `cron_line`): Types of single settings.
- `trust` (`read_settings_file`): Whether a settings file may name programs: only its user may be able to write it.
"""
