"""Advice on where and when to start, and what a scheduler is told.

- `query` (`Asked`, `Advised`, `advise_on`): `iosig advise`: on which file system an application should run.
- `feed` (`export_feed`): What a scheduler is told of applications: their signatures or periods.
- `inputs` (`SignatureSource`, `SiteState`): What advice rests on: signatures.
- `landed` (`site_state`, `newest_poll`, `jobs_near`, `queue_at`): What has landed says of file systems.
- `mix` (`read_mix`): A mix: what a scheduler tells of its file systems and of what runs there, as JSON.
- `figure` (`view_of`): What the picture of advice shows: the file systems' expected loads as signatures say.
- `signatures` (`FeedSignatures`, `ReleaseSignatures`): Where advice has signatures from: a release.
"""
