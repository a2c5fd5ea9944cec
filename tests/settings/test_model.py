"""Defaults of the settings."""

from __future__ import annotations

from iosig.settings.model import SignatureSettings
from iosig.transforms.signatures.methods import DEFAULT_METHODS


def test_default_methods_equal_the_methods_of_the_study() -> None:
    assert SignatureSettings.model_construct().methods == list(DEFAULT_METHODS)
