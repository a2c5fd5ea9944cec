"""What advice on where and when to start is worth, by simulation: `iosig study advice`.

- `figures`: The figures of the study of advice: what each policy costs in contended bytes, and what errors do to it.
- `page`: What the study of advice shows: its page, and tables.
- `running`: The study itself: draws mixes of running applications, places a new one by every policy.
"""

from iosig.studies.study import SEED, WORKERS, Study, seeds

STUDY = Study(
    "advice",
    "What advice on where and when to start is worth, by simulation.",
    """Measure contended bytes and I/O slowdown where advice, load, luck or an oracle choose an application's place.

    Mixes of applications whose signatures are known run on several partitions that are all in use (IOSI, FAST'14,
    section 6.4); bandwidth is shared fairly, and whoever is late stays late.
    """,
    (seeds(100, "Mixes of each setting."), SEED, WORKERS),
)
