"""The `iosig` command: prints results on stdout and progress on stderr, and ends with a documented exit code.

- `advise`: `iosig advise`.
- `backfill`: `iosig backfill`.
- `classify`: `iosig classify`.
- `compress`: `iosig compress`.
- `demo`: `iosig demo`.
- `demo_planted` (`Planted`, `find_planted`): Planted facts of the demo, compared with its last release.
- `demo_story` (`Story`, `tell`): The demo's summary on one screen.
- `completing` (`quietly`): What a shell completes.
- `deploy`: `iosig deploy`.
- `expand`: `iosig expand`.
- `documents` (`schemas`): Documents that belong to no answer, and the JSON Schema of all documents.
- `export`: `iosig export`.
- `extrapolate`: `iosig extrapolate`.
- `fitting` (`fitted`): How a table fits a width.
- `forecast`: `iosig forecast`.
- `forget`: `iosig forget`.
- `figures`: The pictures of `docs/pictures.md`, made from the demo by that page's own commands.
- `job`: `iosig job`.
- `hints` (`runnable`, `command`): Suggested commands, as the user can type them in this shell.
- `land`: `iosig land`.
- `lineage`: `iosig lineage`.
- `live_screen` (`Screen`): The screen of `iosig status --watch`.
- `main`: The command itself: which subcommands there are, and how faults become messages and exit codes.
- `network`: `iosig network`.
- `options`: What several subcommands take, each declared once.
- `period`: `iosig period`.
- `population`: `iosig population`.
- `patterns`: `iosig patterns`.
- `plot`: `iosig plot`.
- `predict`: `iosig predict`.
- `printing` (`show`, `show_records`, `show_json`, `say`, `bytes_text`, `progress_bar`): How results look.
- `query`: `iosig sql`.
- `query_limits` (`limited_memory`, `batches`): What one query may take of memory, per row and in columns.
- `reference`: The reference pages under `docs/`, generated from what they describe.
- `releases`: `iosig releases`, `iosig rollback` and `iosig diff`.
- `replay`: `iosig replay`.
- `report`: `iosig report`.
- `run`: `iosig run`.
- `serve`: `iosig serve`.
- `settings`: `iosig settings`.
- `slowdowns`: `iosig slowdowns`.
- `status`: `iosig status`.
- `summary`: What a release holds, for people: counts, samples, classes, checks, and where it lies.
- `upkeep`: `iosig verify`, `iosig repair`, `iosig maintain` and `iosig upgrade`.
- `watching` (`watch_on_screen`, `waiting`): Look, show, wait, until somebody has seen enough.
- `who` (`report_window`): `iosig who`.
- `windows`: Times as people write them: an instant; a window of two numbers of seconds, or of two instants.
"""

from iosig.cli.main import main, program

__all__ = ["main", "program"]
