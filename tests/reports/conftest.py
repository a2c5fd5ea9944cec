"""Pictures are kept as figures, and looked at."""

from tests.drawn_figures import kept

__all__ = ["kept"]
