"""Simulated benefit of advice on partition and start time: `iosig study advice`.

- `figures`: Contended bytes by policy, and their sensitivity to errors.
- `page`: Template variables and figures of the page.
- `running`: The study itself: draws mixes of running applications, and places a new one by every policy.
"""

from iosig.studies.study import SEED, WORKERS, Study, seed_count_option

STUDY = Study(
    "advice",
    "Benefit of advice on partition and start time, by simulation.",
    """Measure contended bytes and I/O slowdown where advice, load, luck or an oracle choose an application's place.

    Mixes of applications whose signatures are known run on several partitions that are all in use (IOSI, FAST'14,
    section 6.4). Bandwidth is shared fairly, and delayed transfers delay everything after them.
    """,
    (seed_count_option(100, "Mixes of each setting."), SEED, WORKERS),
)
