"""`iosig classify`."""

from __future__ import annotations

from pathlib import Path

import click

from warehouse.store import Store


@click.command("classify")
@click.argument("path", metavar="TRACE", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--direction", type=click.Choice(["read", "write"]), help="Which way the bytes of bare columns went.")
@click.option("--value", type=click.Choice(["counter", "rate", "volume"]), help="What bare columns hold.")
@click.option("--time-zone", help="IANA zone of naive local times; UTC if not given.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def classify_command(
    obj: tuple[Store, Path | None],
    path: Path,
    direction: str | None,
    value: str | None,
    time_zone: str | None,
    as_json: bool,
) -> int:
    """Classify one series of a job's or node's own, without a warehouse (PEARC'18, section 4.1)."""
    from flows.command.printing import bytes_text, show, show_json
    from flows.landing import Told
    from flows.settings import load
    from flows.single import classify_file

    told = Told(direction=direction, value=value, time_zone=time_zone)
    found = classify_file(path, load(obj[1], obj[0].root), told)
    if as_json:
        show_json(found.to_dicts())
        return 0
    rows = [
        (
            row["subject_id"],
            row["direction"],
            row["label"] or row["outcome"],
            bytes_text(row["volume_bytes"]),
            " ".join(bytes_text(part) for part in row["section_bytes"] or []),
            row["cov"],
            row["duration_s"],
        )
        for row in found.iter_rows(named=True)
    ]
    show("Classes", ("subject", "direction", "class", "volume", "quarters", "cov", "duration_s"), rows)
    return 0
