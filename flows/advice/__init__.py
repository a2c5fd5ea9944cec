"""Advice on where and when to start, and what a scheduler is told.

- `advising` (`Asked`, `Advised`, `advise_on`, `choose`): `iosig advise`: on which file system an application should
  run, and how long it should wait (IOSI, section 6.4).
- `feed` (`export_feed`): What a scheduler is told of applications: their signatures or periods, how sure they are
  and until when they hold.
- `inputs` (`SignatureSource`, `SiteState`): What advice rests on: signatures, and file systems with their load and
  what runs there, whoever tells of them.
- `landed` (`site_state`): What the warehouse tells advice: signatures of a release, and what file systems did and
  ran at an instant.
- `mix` (`read_mix`): A mix: what a scheduler tells of its file systems and of what runs there, as JSON;
  docs/advice.md has its form.
- `picture` (`view_of`): What the picture of advice shows: the file systems' expected loads as signatures say, and
  the application on top.
- `signatures` (`FeedSignatures`, `ReleaseSignatures`): Where advice has signatures from: a release, or a feed that
  was made of one, for hosts without the warehouse.
"""
