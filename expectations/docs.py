"""Write the local Data Docs: pages with the validation results of a release, which need no network.

They begin with the release and its failed expectations; passed ones are collapsed. Pages contain no scripts and forbid
loading any resource, so that nothing from a log can be executed.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl

from iosig.expectations import sentences, suites
from iosig.expectations.suites import Rule
from iosig.warehouse.contracts import table as table_named
from iosig.warehouse.contracts.quality import QUALITY
from iosig.warehouse.contracts.releases import FAILED
from iosig.warehouse.engine_paths import read_parquet
from iosig.warehouse.releases import releases
from iosig.warehouse.releases.releases import Release
from iosig.warehouse.store.store import Store

_PAGES = Path(__file__).parent / "pages"
_SEVERITIES = {"critical": "critical failure", "warning": "warning", "info": "note"}
_ORDER = list(_SEVERITIES)
#: maximum number of releases in the history, and of days per failure
_LISTED_RELEASES = 12
_LISTED_DAYS = 7


@dataclass(frozen=True, slots=True)
class About:
    """Release or rejected run that the pages describe; a rejected run also names the release that stays current.

    history: releases, the newest first.
    """

    warehouse: str
    made_at: str
    verdict: str
    release_id: str | None
    history: Sequence[Release]


@dataclass(frozen=True, slots=True)
class Result:
    """Outcome of one validated expectation: a row of `quality` in words; `happened` is empty if it passes."""

    table_name: str
    rule: Rule
    severity: str
    happened: str
    what_to_do: str
    is_checked: bool
    days: Sequence[str]
    more_days: int
    examples: Sequence[str]


def write_release_docs(store: Store, release: Release) -> Path:
    """Replace the Data Docs by those of a release, and return their index."""
    history = releases.history(store)[::-1]
    about = About(store.address, _minute(release.created_at), release.verdict, release.release_id, history)
    files = releases.files_of(store, release).get(QUALITY.name, [])
    rows = pl.concat(read_parquet(store.here(path)) for path in files) if files else pl.DataFrame()
    return _upload_pages(store, build(rows, about, store.data_docs))


def _upload_pages(store: Store, index: Path) -> Path:
    """Upload the pages to the warehouse storage, and return their index."""
    pages = (path for path in index.parent.rglob("*") if path.is_file())
    store.files.push(path.relative_to(store.root).as_posix() for path in pages)
    return index


def complete(store: Store) -> None:
    """Write the current release's pages if a run was killed before it could replace those of an older release."""
    release, index = releases.current(store), store.local("data_docs/index.html")
    is_told = release and index.is_file() and release.release_id in index.read_text(encoding="utf-8")
    if release and not is_told:
        write_release_docs(store, release)


def write_refusal_docs(store: Store, quality: pl.DataFrame) -> Path:
    """Write the pages of a rejected run, separate from those of the current release; return their index."""
    history = releases.history(store)[::-1]
    current = history[0].release_id if history else None
    about = About(store.address, _minute(datetime.now(UTC).isoformat()), FAILED, current, history)
    return _upload_pages(store, build(quality, about, store.data_docs / "refused"))


def build(quality: pl.DataFrame, about: About, into: Path) -> Path:
    """Replace the Data Docs folder by pages of `quality` rows, and return the index page.

    The new folder is built next to the old one and renamed into its place, so that readers never see partial content.
    """
    new_folder, old_folder = into.with_name(f".{into.name}.new"), into.with_name(f".{into.name}.old")
    for folder in (new_folder, old_folder):
        shutil.rmtree(folder, ignore_errors=True)
    new_folder.mkdir(parents=True)
    for name, page in _pages(quality, about):
        (new_folder / name).write_text(page, encoding="utf-8")
    if into.exists():
        into.rename(old_folder)
    new_folder.rename(into)
    shutil.rmtree(old_folder, ignore_errors=True)
    return into / "index.html"


def _pages(quality: pl.DataFrame, about: About) -> Iterator[tuple[str, str]]:
    """Yield each page's name and text: a page per table, then the index."""
    from jinja2 import Environment, FileSystemLoader

    environment = Environment(loader=FileSystemLoader(_PAGES), autoescape=True, trim_blocks=True, lstrip_blocks=True)
    results = sorted(map(_result, quality.iter_rows(named=True)), key=lambda result: _ORDER.index(result.severity))
    by_table: dict[str, list[Result]] = {}
    for result in results:
        by_table.setdefault(result.table_name, []).append(result)
    page, index = (environment.get_template(name) for name in ("table.j2", "index.j2"))
    for name, table_results in sorted(by_table.items()):
        yield f"{name}.html", page.render(about=about, name=name, grain=_grain(name), **_parts(table_results))
    worst_first = sorted(by_table, key=lambda name: (_worst(by_table[name]), name))
    counts_by_table = {name: counts for name in worst_first if (counts := _counts(by_table[name]))}
    of_release = {"about": about, "verdict": _verdict(about, results), "history": _history(about)}
    of_tables = {"told": counts_by_table, "silent": sorted(by_table.keys() - counts_by_table)}
    yield "index.html", index.render(**of_release, **of_tables, **_parts(results))


def _history(about: About) -> dict[str, Any]:
    """Return the latest releases, the newest first, and the number of older ones."""
    latest = about.history[:_LISTED_RELEASES]
    lines = [(release.release_id, _minute(release.created_at), release.kind, release.verdict) for release in latest]
    return {"lines": lines, "more_count": len(about.history) - len(latest)}


def _parts(results: Sequence[Result]) -> dict[str, list[Result]]:
    """Split results into failures, notes, unchecked expectations and passed ones."""
    failed = [result for result in results if result.happened and result.is_checked]
    return {
        "failures": [result for result in failed if result.severity != "info"],
        "notes": [result for result in failed if result.severity == "info"],
        "unchecked": [result for result in results if result.happened and not result.is_checked],
        "holding": [result for result in results if not result.happened],
    }


def _verdict(about: About, results: Sequence[Result]) -> str:
    """Return the verdict with the number of failed expectations by severity."""
    counts = _counts([result for result in results if result.severity != "info"])
    return f"{about.verdict}: {counts or 'no warnings'}"


def _counts(results: Sequence[Result]) -> str:
    """Return the number of failed expectations by severity as text; empty if all pass."""
    severities = [result.severity for result in results if result.happened and result.is_checked]
    counts = [(severities.count(severity), word) for severity, word in _SEVERITIES.items()]
    return ", ".join(f"{count} {word}{'s' if count > 1 else ''}" for count, word in counts if count)


def _worst(results: Sequence[Result]) -> int:
    """Return the index of the worst failed severity, or the number of severities if all pass."""
    return min((_ORDER.index(result.severity) for result in results if result.happened), default=len(_ORDER))


def _grain(table_name: str) -> str:
    try:
        return f"{table_named(table_name).grain[:1].upper()}{table_named(table_name).grain[1:]}."
    except KeyError:
        return "A table of an older release."


# ---- results in words


def _result(row: Mapping[str, Any]) -> Result:
    rule = suites.look_up_rule(row["table_name"], row["expectation"], row["severity"])
    observed = json.loads(row["observed"])
    broken = {} if row["success"] else observed
    days = broken.get("failing_days", [])[:_LISTED_DAYS]
    return Result(
        table_name=row["table_name"],
        rule=rule,
        severity=row["severity"],
        happened="" if row["success"] else sentences.describe_failure(rule, row["unexpected_count"], observed),
        what_to_do="" if row["success"] else sentences.what_to_do(rule, observed),
        is_checked=sentences.NOT_CONFIGURED not in observed,
        days=days,
        more_days=broken.get("failing_day_count", 0) - len(days),
        examples=list(dict.fromkeys(map(_shown, broken.get("examples", ())))),
    )


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        # rows of landed tables name their file and line
        place = [str(value[name]) for name in ("source_file", "line") if value.get(name) is not None]
        values = [each for name, each in value.items() if name not in ("source_file", "line")]
        value = [":".join(place), *values] if place else values
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _minute(instant: str) -> str:
    """Format a timestamp to the minute."""
    return f"{datetime.fromisoformat(instant).astimezone(UTC):%Y-%m-%d %H:%M} UTC"
