"""Tests in this folder skip fsync."""

from tests.quick_disk import no_waiting_for_the_disk

__all__ = ["no_waiting_for_the_disk"]
