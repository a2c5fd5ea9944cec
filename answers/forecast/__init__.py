"""The load to come: what runs and waits, by signatures, and what nobody knows yet, by the past.

- `query` (`Asked`, `Told`, `told`, `document`, `view_of`): `iosig forecast`: the expected rate and its range.
- `jobs` (`JobAhead`, `jobs_ahead`, `coming`): Jobs that run and wait on a file system, and how others like them fared.
- `past` (`past_of`, `Minutes`): What flowed of which nobody knew, in the days before.
- `what_if` (`asked_for`): The demand of a trace, also of one that nobody ran.
"""
