"""Provide the `iosig` command: results on stdout, progress on stderr, and documented exit codes.

- `advise`: `iosig advise`.
- `backfill`: `iosig backfill`.
- `check_site`: `iosig check-site`.
- `classify`: `iosig classify`.
- `compress`: `iosig compress`.
- `demo`: `iosig demo`.
- `demo_planted` (`PlantedFact`, `find_planted`): Planted facts of the demo, compared with its last release.
- `demo_story` (`Story`, `tell`): The demo's summary on one screen.
- `completion` (`quietly`): Shell completion of names in a warehouse.
- `deploy`: `iosig deploy`.
- `expand`: `iosig expand`.
- `documents` (`schemas`): JSON documents of commands outside `answers`, and the JSON Schema of all documents.
- `export`: `iosig export`.
- `extrapolate`: `iosig extrapolate`.
- `table_layout` (`fit_table`): Fits a table to the terminal's width.
- `forecast`: `iosig forecast`.
- `forget`: `iosig forget`.
- `figures`: The pictures of `docs/pictures.md`, made from the demo by that page's own commands.
- `job`: `iosig job`.
- `hints` (`runnable`, `command`): Suggested commands, as the user can type them in this shell.
- `land`: `iosig land`.
- `lineage`: `iosig lineage`.
- `live_screen` (`Screen`): The screen of `iosig status --watch`.
- `main`: The command itself: its subcommands, and the conversion of faults into messages and exit codes.
- `network`: `iosig network`.
- `options`: Options that several subcommands share.
- `outliers`: Options for the test of outliers in the spectrum.
- `period`: `iosig period`.
- `population`: `iosig population`.
- `patterns`: `iosig patterns`.
- `plot`: `iosig plot`.
- `predict`: `iosig predict`.
- `printing` (`show`, `show_records`, `show_json`, `say`, `bytes_text`, `progress_bar`): Output and progress.
- `query`: `iosig sql`.
- `query_limits` (`limit_memory`, `batches`): Limits of one query: memory, bytes per row, columns.
- `reference`: Generates the reference pages under `docs/` from the code.
- `releases`: `iosig releases`, `iosig rollback` and `iosig diff`.
- `replay`: `iosig replay`.
- `report`: `iosig report`.
- `run`: `iosig run`.
- `serve`: `iosig serve`.
- `settings`: `iosig settings`.
- `slowdowns`: `iosig slowdowns`.
- `status`: `iosig status`.
- `summary`: A readable summary of a release: counts, samples, classes, checks, and its location.
- `top`: `iosig top`.
- `upkeep`: `iosig verify`, `iosig repair`, `iosig maintain` and `iosig upgrade`.
- `verify_classes`: `iosig verify-classes`.
- `watch_loop` (`watch_on_screen`, `waiting`): The refresh loop of `iosig status --watch`.
- `who` (`report_window`): `iosig who`.
- `windows`: Parses times on the command line: an instant, or a window of two numbers of seconds or two instants.
"""

from iosig.cli.main import main, program

__all__ = ["main", "program"]
