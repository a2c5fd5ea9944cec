"""The benchmark of years: each day has its date, and the page reports the measurements."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import polars as pl

from bench import years
from bench.years import NightCost


def measured(night: int, cpu_s: float, *, is_real: bool = True) -> NightCost:
    return NightCost(night, is_real, cpu_s, 2 * cpu_s, 400_000_000, 100 * night, 1_000_000 * night, 1_000, 10)


def test_page_compares_the_last_nights_with_early_nights(tmp_path: Path) -> None:
    early = [measured(night, 20.0 + night - 10) for night in range(9, 12)]
    written = [measured(night, 0.0, is_real=False) for night in range(12, 90)]
    late = [measured(night, 22.0 + night - 91) for night in range(90, 93)]
    beside = measured(12, 21.0)
    more = [measured(night, 0.0, is_real=False) for night in range(93, 360)]
    latest = [measured(night, 25.2) for night in range(360, 363)]
    page = years.format_page([measured(0, 99.0), *early, beside, *written, *late, *more, *latest], 10, "Said.")
    assert page.endswith("Said.\n")
    assert "Night 92 takes 1.10 times the processor time of night 10, and 1.00 times its memory." in page
    assert "Night 362 takes 1.26 times the processor time of night 10, and 1.00 times its memory." in page
    assert page.count("times its memory") == 2
    assert page.count("| 12 |") == 2, "a night that was run beside the one that was written"
    assert "| 92 | real | 23.0 | 400 | 9,200 | 92.0 | 0.0 | 0.0 |" in page
    assert "| 50 |" not in page
    years.draw([*early, *written, *late]).write(tmp_path / "years.png")
    assert (tmp_path / "years.png").stat().st_size > 5000


def test_day_of_the_site_has_its_polls_and_jobs(tmp_path: Path) -> None:
    jobs, polls = (Path(path) for path in years.write_day(tmp_path, 3))
    assert len(jobs.read_text().splitlines()) == 61
    frame = pl.read_parquet(polls)
    assert frame.height == 4 * 8640
    assert set(frame["polled_at"].dt.offset_by("-1us").dt.date()) == {date(2025, 1, 9)}
