"""Who moved what of a file system's traffic, as a release tells it.

- `asking` (`Asked`, `Answer`, `who`, `document`): `iosig who`: jobs, users and applications by bytes, and what nobody
  explains.
- `hurting` (`HurtAnswer`, `hurt`, `hurt_document`): `iosig who --hurt`: whose bursts took longer, and whose bytes
  stood there.
- `landed` (`who_of_landed`, `hurt_of_landed`): The same of a time that is in no release yet, from what has landed.
- `likely` (`likely_moved`): Which runs are likely to have moved most of what nobody explains.
- `picture` (`view_of`): What the picture of an answer shows.
- `unknown` (`unknown`, `document`): What moves bytes again and again, and is in no job log.
"""
