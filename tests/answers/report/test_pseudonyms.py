"""Pseudonyms replace user names consistently and leave other values unchanged."""

from __future__ import annotations

from pathlib import Path

import polars as pl
from hypothesis import given, settings, strategies as st

from iosig.answers.report.pseudonyms import Pseudonymizer, create_pseudonymizer
from iosig.settings.model import Settings
from iosig.warehouse.store.pseudonyms import Names
from iosig.warehouse.store.store import Store
from tests.budget import examples

_HIDER = Pseudonymizer(Names(Settings(), b"a key of the site's own, long enough"))
_NAMES = st.text(st.characters(codec="utf-8", categories=["L", "N"]), min_size=3, max_size=12).map("qx{}ł".format)


@given(_NAMES, _NAMES)
@settings(max_examples=examples(50), deadline=None)
def test_names_are_hidden_and_equal_names_stay_equal(user: str, other: str) -> None:
    ids = [f"{user}/ior/8", f"{other}%2Fx/s3d/16", f"{user}/ior/16"]
    frame = pl.DataFrame(
        {
            "user": [user, other, user],
            "account": [other, None, user],
            "application_id": ids,
            "source_file": [f"/home/{user}/x", f"{other}.darshan", ""],
            "node_count": [8, 16, 16],
        }
    )
    hidden = _HIDER.hide(frame)
    assert not [name for name in (user, other) if name in str(hidden.to_dicts())]
    assert hidden["node_count"].to_list() == [8, 16, 16]
    assert hidden["account"][1] is None
    told = hidden["application_id"].to_list()
    assert [name.partition("/")[2] for name in told] == ["ior/8", "s3d/16", "ior/16"]
    assert told[0].partition("/")[0] == told[2].partition("/")[0] == hidden["user"][0] == hidden["account"][2]


def test_ids_of_all_machines_have_the_pseudonym_of_the_user() -> None:
    hidden = _HIDER.names.name("site/ann")
    assert _HIDER.application_id("site%2Fann@titan/ior/8") == f"{hidden}@titan/ior/8"
    assert _HIDER.application_id("site%2Fann/ior@2/8") == f"{hidden}/ior@2/8"


def test_pseudonyms_are_stable_and_use_the_configured_key(tmp_path: Path) -> None:
    store = Store(tmp_path / "warehouse")
    store.root.mkdir()
    first, again = (create_pseudonymizer(store, Settings()) for _ in range(2))
    assert first
    assert again
    assert first.names.name("ann") == again.names.name("ann")
    key = tmp_path / "key"
    key.write_bytes(b"k" * 32)
    key.chmod(0o600)
    own = create_pseudonymizer(store, Settings.model_validate({"privacy": {"key_file": str(key)}}))
    assert own
    assert own.names.name("ann") == Names(Settings(), b"k" * 32).name("ann") != first.names.name("ann")


def test_pseudonymized_warehouse_is_not_hidden_again(tmp_path: Path) -> None:
    store = Store(tmp_path / "warehouse")
    store.root.mkdir()
    (store.root / "privacy.json").write_text("{}")
    assert create_pseudonymizer(store, Settings()) is None
