"""Advise on where and when to start an application, and export feeds for schedulers.

- `query` (`Query`, `AdviceResult`, `advise_on`): `iosig advise`: on which file system an application should run.
- `feed` (`export_feed`): Signatures or periods of applications, exported for schedulers.
- `inputs` (`SignatureSource`, `SiteState`): Inputs of advice: signatures, and the state of the file systems.
- `landed` (`site_state`, `newest_poll`, `jobs_near`, `queue_at`): The state of file systems, from landed inputs.
- `mix` (`read_mix`): The state of file systems and running jobs, as JSON from a scheduler.
- `figure` (`build_view`): Figure data: the expected load of each file system.
- `signatures` (`FeedSignatures`, `ReleaseSignatures`): Signatures from a feed or from a release.
"""
