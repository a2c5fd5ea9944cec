"""The `iosig` command: prints results on stdout and progress on stderr, and ends with a documented exit code."""

from flows.command.main import main

__all__ = ["main"]
