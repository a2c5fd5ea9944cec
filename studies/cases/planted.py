"""Plant runs like those in the case studies of Sigovan et al. (IPDPS'13, section V).

The shapes are the paper's; its traces are not available. Planted are the causes that the paper gives: aggregation
imbalance and a huge request of process 0 in Chombo (V.A), and requests without collectives in FLASH-IO over HDF5, a
storm of small metadata requests (V.B).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from iosig.studies.networks.planted import PlantedSystem, SystemShape

#: time of a request in the lowest band [s]
_BASE_TIME_S = 2.0**-9
#: in Chombo, one of so many ranks aggregates the data of its neighbors
AGGREGATION = 8
#: slowdown of aggregators in octaves, and size of the huge request [B]
_AGGREGATOR_OCTAVES, _HUGE_BYTES = 2.0, float(1 << 30)


@dataclass(frozen=True, slots=True)
class Case:
    """A planted run: its name, the case study and the paper's figure, and a function that plants it."""

    name: str
    study: str
    figure: str
    plant: Callable[[np.random.Generator], PlantedSystem]


def _plant_chombo(
    generator: np.random.Generator, requests_per_rank: int, spread_octaves: float, huge_bytes: float
) -> PlantedSystem:
    """Plant 1,024 ranks with four I/O nodes and two servers; every eighth rank aggregates, with larger latencies."""
    shape = SystemShape(1024, 4, 2, requests_per_rank)
    is_aggregator = np.arange(shape.rank_count) % AGGREGATION == 0
    return PlantedSystem(
        "striped",
        shape,
        level_octaves=_AGGREGATOR_OCTAVES * is_aggregator + generator.normal(0.0, 0.1, shape.rank_count),
        slow_ratio=np.ones(shape.rank_count),
        spread_octaves=np.full(shape.rank_count, spread_octaves),
        request_count=np.full(shape.rank_count, requests_per_rank),
        base_time_s=_BASE_TIME_S,
        band_octaves=np.array([0.0, 2.0, 4.0]),
        band_bytes=np.array([2.0**16, 2.0**18, 2.0**20]),
        band_order="phases",
        hiccup_ratio=0.001,
        huge_bytes=huge_bytes,
        is_cause=is_aggregator,
    )


def plant_chombo_small(generator: np.random.Generator) -> PlantedSystem:
    """Plant Chombo's r222: three groups of latencies over time (Figures 7, 9 to 11)."""
    return _plant_chombo(generator, 24, 0.3, 0.0)


def plant_chombo_large(generator: np.random.Generator) -> PlantedSystem:
    """Plant Chombo's r444: more requests, a wider distribution, and a huge request of process 0 (Figures 8 and 12)."""
    return _plant_chombo(generator, 60, 1.2, _HUGE_BYTES)


def _plant_flash(
    generator: np.random.Generator, shape: SystemShape, band_octaves: list[float], spread: tuple[float, float]
) -> PlantedSystem:
    count = shape.rank_count
    return PlantedSystem(
        "circular",
        shape,
        level_octaves=generator.normal(0.0, spread[0], count),
        slow_ratio=np.ones(count),
        spread_octaves=np.full(count, spread[1]),
        request_count=np.full(count, shape.requests_per_rank),
        base_time_s=_BASE_TIME_S,
        band_octaves=np.array(band_octaves),
        band_bytes=2.0 ** (14 + np.array(band_octaves)),
        band_order="phases",
        hiccup_ratio=0.0,
        huge_bytes=0.0,
        is_cause=np.zeros(count, dtype=bool),
    )


def plant_flash_pnetcdf(generator: np.random.Generator) -> PlantedSystem:
    """Plant FLASH-IO over PNetCDF: collective writes, small at first, then in two sizes (Figures 14 and 15)."""
    return _plant_flash(generator, SystemShape(4096, 16, 4, 12), [0.0, 5.0, 7.0], (0.05, 0.25))


def plant_flash_hdf5(generator: np.random.Generator) -> PlantedSystem:
    """Plant FLASH-IO over HDF5: each rank makes many small metadata requests of irregular latency (Figure 13)."""
    return _plant_flash(generator, SystemShape(2048, 8, 2, 40), [1.0], (0.6, 1.2))


CASES = (
    Case("chombo-r222", "Chombo", "7, 11", plant_chombo_small),
    Case("chombo-r444", "Chombo", "8, 12", plant_chombo_large),
    Case("flash-pnetcdf", "FLASH-IO", "14, 15", plant_flash_pnetcdf),
    Case("flash-hdf5", "FLASH-IO", "13", plant_flash_hdf5),
)
