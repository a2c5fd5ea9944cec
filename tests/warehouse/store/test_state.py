"""Test state documents: every changed byte is detected, the copy restores it, and a kill causes no damage."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from iosig.warehouse.errors import MachineFault
from iosig.warehouse.store import state
from iosig.warehouse.store.files import Folder
from iosig.warehouse.store.state import put_state
from iosig.warehouse.store.store import Store, document

PINS, OTHER = "pins.json", "positions/0123456789abcdef.json"
BEFORE: dict[str, Any] = {"20260302T000000Z-run": None, "é": "2026-03-02"}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = Store(tmp_path)
    put_state(store, PINS, BEFORE)
    put_state(store, OTHER, {"cursor": 7})
    assert list(state.problems(store)) == []
    return store


DAMAGES: dict[str, Callable[[bytes], bytes | None]] = {
    "removed": lambda content: None,
    "emptied": lambda content: b"",
    "halved": lambda content: content[: len(content) // 2],
    "doubled": lambda content: content * 2,
    "null": lambda content: b"null\n",
}


@pytest.mark.parametrize("how", DAMAGES)
@pytest.mark.parametrize("name", [PINS, f"copies/{PINS}", OTHER, f"copies/{OTHER}"])
def test_damage_is_detected_and_repaired(store: Store, name: str, how: str) -> None:
    path = store.root / name
    before = path.read_bytes()
    path.unlink()
    if (content := DAMAGES[how](before)) is not None:
        path.write_bytes(content)
    assert [found for found, _ in state.problems(store)] == [name]
    assert [found for found, _ in state.mend(store)] == [name]
    assert path.read_bytes() == before
    assert list(state.problems(store)) == []


def test_every_bit_flip_is_detected(store: Store) -> None:
    draw = random.Random(7)
    for name in (PINS, f"copies/{PINS}"):
        path = store.root / name
        before = path.read_bytes()
        for place in range(len(before)):
            content = bytearray(before)
            content[place] ^= 1 << draw.randrange(8)
            path.write_bytes(content)
            assert [found for found, _ in state.problems(store)] == [name], place
        path.write_bytes(before)


def test_copy_of_another_document_is_detected(store: Store) -> None:
    (store.root / "copies" / PINS).write_bytes((store.root / "copies" / OTHER).read_bytes())
    assert [found for found, _ in state.problems(store)] == [f"copies/{PINS}"]


@pytest.mark.parametrize("count", range(4))
@pytest.mark.parametrize("after", [None, {}, {"new": None}])
def test_killed_update_leaves_old_or_new_content(
    store: Store, monkeypatch: pytest.MonkeyPatch, count: int, after: dict[str, Any] | None
) -> None:
    left = count

    def deadly(change: Callable[..., None]) -> Callable[..., None]:
        def do(*arguments: Any) -> None:
            nonlocal left
            left -= 1
            if left < 0:
                raise KeyboardInterrupt
            change(*arguments)

        return do

    with monkeypatch.context() as patch:
        for name in ("put", "remove"):
            patch.setattr(Folder, name, deadly(getattr(Folder, name)))
        try:
            put_state(store, PINS, after)
        except KeyboardInterrupt:
            assert document(store, PINS) in (BEFORE, after)
        else:
            assert document(store, PINS) == after
    assert list(state.problems(store)) == []
    put_state(store, PINS, BEFORE)
    assert state.has_copies(store)


def test_damaged_document_without_copy_is_set_aside(store: Store) -> None:
    (store.root / PINS).write_text("{torn")
    (store.root / "copies" / PINS).unlink()
    assert [outcome for _, outcome in state.mend(store)] == [f"set aside as damaged/{PINS}: it has no backup"]
    assert (store.root / "damaged" / PINS).is_file()
    assert list(state.problems(store)) == []


def test_documents_of_older_version_get_copies(store: Store) -> None:
    for path in (store.root / "copies").rglob("*.json"):
        path.unlink()
    assert not state.has_copies(store)
    assert [found for found, _ in state.problems(store)] == [f"copies/{PINS}", f"copies/{OTHER}"]
    state.copy_all(store)
    assert state.has_copies(store)
    assert list(state.problems(store)) == []


def test_invalid_document_is_read_from_its_copy(store: Store) -> None:
    (store.root / PINS).write_text("{torn")
    assert state.read_state(store, PINS) == BEFORE
    assert [found for found, _ in state.problems(store)] == [PINS], "the damage is reported all the same"
    (store.root / "copies" / PINS).write_text("{torn")
    with pytest.raises(MachineFault, match=f"{PINS} is damaged"):
        state.read_state(store, PINS)
