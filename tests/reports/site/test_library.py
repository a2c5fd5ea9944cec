"""The vendored libraries of the pages: checksums, versions, licenses and size."""

from __future__ import annotations

import hashlib
import json

from iosig.reports.site.library import VENDORED, assets

_MOST_SHELL_BYTES = 650_000


def test_vendored_files_match_the_manifest() -> None:
    manifest = json.loads((VENDORED / "manifest.json").read_text())
    named = {file["file"]: file["sha256"] for package in manifest for file in package["files"]}
    there = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in VENDORED.iterdir()}
    assert there.pop("manifest.json")
    assert there == named


def test_every_library_has_a_version_and_a_license() -> None:
    for package in json.loads((VENDORED / "manifest.json").read_text()):
        license_name = next(file["file"] for file in package["files"] if file["file"].endswith(".LICENSE"))
        assert package["license"] == "MIT"
        assert "Permission is hereby granted" in (VENDORED / license_name).read_text()
        assert package["integrity"].startswith("sha512-")


def test_shell_is_small_and_includes_the_licenses() -> None:
    found = {content.path: len(content.data) for content in assets()}
    assert sum(found.values()) < _MOST_SHELL_BYTES
    assert sum(path.endswith(".LICENSE") for path in found) == 3
