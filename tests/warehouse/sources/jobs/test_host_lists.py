"""Test the expansion of schedulers' host lists: every host once; no hosts if malformed or too long."""

from __future__ import annotations

import pytest

from iosig.warehouse.sources.jobs.host_lists import MAX_HOSTS, expand


@pytest.mark.parametrize(
    ("hosts", "expected"),
    [
        ("cn01", ["cn01"]),
        ("cn[08-11,20],login", ["cn08", "cn09", "cn10", "cn11", "cn20", "login"]),
        ("r[1-2]c[0-1].site", ["r1c0.site", "r1c1.site", "r2c0.site", "r2c1.site"]),
        ("nid[000009-000010]", ["nid000009", "nid000010"]),
        ("cn01/0*8+cn01/1+cn02/0-7", ["cn01", "cn02"]),
        ("i02n33/1+i02n33/0+i02n32/1", ["i02n33", "i02n32"]),
        ("x1/0*128", ["x1"]),
    ],
)
def test_every_host_is_listed_once(hosts: str, expected: list[str]) -> None:
    assert expand(hosts) == expected


@pytest.mark.parametrize("hosts", ["", "cn[1-", "cn[a-b]", "cn[5-1]", "cn[1-999999999999]", "a[1-999]b[1-999]", ",,"])
def test_malformed_or_too_long_list_has_no_hosts(hosts: str) -> None:
    assert expand(hosts) is None


def test_list_of_maximum_length_is_expanded() -> None:
    assert len(expand(f"n[1-{MAX_HOSTS - 1}]") or []) == MAX_HOSTS - 1
    assert expand(f"n[1-{MAX_HOSTS}],m[1-2]") is None
