"""Load and validate the settings of a site from one TOML file.

- `model` (`Settings`, `load`, `AdviceSettings`): All sections of the settings file.
- `periods` (`PeriodSettings`): Detection of periods.
- `renaming` (`has_former_names`, `rename_settings`): Conversion of settings files with former names.
- `storage` (`StorageSettings`, `PrivacySettings`, `CatalogueSettings`): Retention, pseudonyms and the catalogue.
- `values` (`with_group`, `time_zone`, `cron_line`): Validators and types of single settings.
- `trust` (`read_settings_file`): Check of the write access to a settings file, which may name programs.
"""
