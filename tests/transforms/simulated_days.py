"""Days of simulated sites of various sizes and loads: job times, and the traffic of each minute."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from iosig.studies.joint.sites import FAMILIES, draw_neighbors
from iosig.transforms.arrays import Reals
from iosig.transforms.synthetic.site import Site, SiteParams, simulate
from iosig.transforms.synthetic.workload import APPLICATIONS, GB

HOUR_S, DAY_S = 3600.0, 86_400.0
_FAMILIES = ("fair", "mixed", "seeks", "stopping")


@dataclass(frozen=True, slots=True)
class SimulatedDay:
    """Jobs in seconds since the first poll, and the bytes of each minute."""

    start_s: Reals
    end_s: Reals
    bytes_per_min: Reals

    def shifted(self, shift_h: int) -> SimulatedDay:
        """Return the day with all job times shifted by some hours.

        As in a log with a wrong clock, only jobs that end on the day by the shifted clock are present.
        """
        start_s, end_s = (each + shift_h * HOUR_S for each in (self.start_s, self.end_s))
        is_logged = (end_s >= 0) & (end_s < len(self.bytes_per_min) * 60.0)
        return SimulatedDay(start_s[is_logged], end_s[is_logged], self.bytes_per_min)


def simulated_day(seed: int) -> SimulatedDay:
    """Simulate a day, or in a quarter of cases two days, of a site of random size, load and poll interval."""
    rng = np.random.default_rng([46, seed])
    kind, days = rng.integers(3), float(rng.choice([1, 1, 1, 2]))
    bandwidth, interval_s = float(rng.choice([5, 10, 40])) * GB, float(rng.choice([2.0, 5.0, 10.0, 30.0]))
    if kind < 2:
        count = int(rng.integers(1, len(APPLICATIONS) + 1))
        chosen = sorted(rng.choice(len(APPLICATIONS), count, replace=False))
        applications = tuple(APPLICATIONS[place] for place in chosen)
        params = SiteParams(
            seed=seed,
            days=days,
            controller_count=1,
            controller_bytes_per_s=bandwidth,
            interval_s=interval_s,
            foreign_level=float(rng.choice([0.0, 0.5, 1.0, 2.0, 4.0])),
            fault_level=float(rng.choice([0.0, 1.0])),
            drift_ratio=float(rng.choice([0.003, 0.015])),
            background_bytes_per_s=float(rng.choice([0.02, 0.1, 0.5])) * GB,
        )
    else:
        applications = tuple(draw_neighbors(seed, int(rng.integers(1, 30))))
        family = FAMILIES[str(rng.choice(_FAMILIES))]
        params = replace(family.params, seed=seed, days=days, interval_s=interval_s)
    return _day_of(simulate(params, applications))


def _day_of(site: Site) -> SimulatedDay:
    """Return the jobs and the traffic by minute of a site; running jobs end with the last poll."""
    start_us = int(site.params.start.timestamp() * 1e6)
    last_us = start_us + int(site.params.span_s * 1e6)
    started, ended = (site.jobs[name].dt.epoch("us") for name in ("started_at", "ended_at"))
    per_minute = round(60 / site.params.interval_s)
    moved = sum(site.traffic[f"{name}_bytes"].to_numpy().astype(np.float64) for name in ("read", "write"))
    whole = len(moved) // per_minute * per_minute  # type: ignore[arg-type]
    return SimulatedDay(
        (started - start_us).to_numpy() / 1e6,
        (ended.fill_null(last_us) - start_us).to_numpy() / 1e6,
        moved[:whole].reshape(-1, per_minute).sum(axis=1),  # type: ignore[index]
    )
