"""What settings say where nobody set anything."""

from __future__ import annotations

from iosig.settings.model import SignatureSettings
from iosig.transforms.signatures.methods import DEFAULT_METHODS


def test_the_usual_methods_are_those_that_the_study_chooses_among() -> None:
    assert SignatureSettings.model_construct().methods == list(DEFAULT_METHODS)
