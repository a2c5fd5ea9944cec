"""Naive implementation of `iosig.warehouse.sources.tmio.stream`: a whole trace of JSON Lines, request by request."""

from __future__ import annotations

import json
from typing import Any

from tests.naive.sources.tmio.source import requests

Request = tuple[float, float, float | None]


def flushes(text: str) -> list[dict[str, list[Request]]]:
    """Return the requests of each flush by direction; the last flush may be incomplete. All lines must be valid."""
    groups: list[dict[str, Any]] = [{}]
    for line in text.splitlines():
        document = json.loads(line)
        if any(mode in groups[-1] for mode in document):
            groups.append({})
        groups[-1] |= document
        if "io_time" in document:
            groups.append({})
    return [_of(group) for group in groups if group]


def _of(group: dict[str, Any]) -> dict[str, list[Request]]:
    found: dict[str, list[Request]] = {}
    for mode, content in group.items():
        if mode == "io_time":
            continue
        direction, *rest = mode.split("_")
        transfers = [group.get(f"{direction}_async{end}") for end in ("", "_t")]
        if rest[-1] == "b" and any(other and other["bandwidth"]["b_rank_avr"] for other in transfers):
            continue
        lists = content["bandwidth"]
        phases = zip(lists["b_rank_avr"], lists["t_rank_s"], lists["t_rank_e"], strict=True)
        good, _ = requests(phases)
        if good:
            found.setdefault(direction, []).extend(good)
    return found
