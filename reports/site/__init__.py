"""Build the report site: static pages of a release, usable from a file system or any web server.

Pure: data frames in, file contents out. `iosig.answers.report` reads a release and writes the files.

- `advice` (`AdviceFrames`, `contents`): Recommended file systems and start times of applications.
- `applications` (`ApplicationFrames`, `each`, `encode_list`, `histories`): A list of all applications, a file for each.
- `changes` (`ChangeFrames`, `make_variables`): Changes since the previous release, as dumbbell plots.
- `figures` (`Page`, `Figure`, `command_line`): Declarations of pages, and the command that runs a figure's query.
- `filesystems` (`FilesystemFrames`, `calendars`, `days`): A heat map for each file system, and a file for each day.
- `lineage` (`TableRow`, `contents`): The graph of steps, and the source tables of each table.
- `library` (`assets`): Scripts, styles and vendored libraries.
- `night` (`NightFrames`, `make_variables`): The start page.
- `packing` (`Content`, `pack_document`, `unpack_document`, `columns`, `lean`, `file_hash`): Encoding of data files.
- `pages` (`PAGES`, `page`): The declarations of all pages.
- `population` (`PopulationFrames`, `contents`): Statistics of all runs.
- `quality` (`QualityFrames`, `make_variables`): Coverage of days, failed checks and rejected rows.
- `runs` (`RunFrames`, `jobs`, `hours`): A file for each hour in which runs started.
- `shells` (`shell`, `About`, `root_page`): The HTML of the pages.
- `traces` (`build_trace_findings`): Findings of traced runs, as data for the runs' pages.
- `tables` (`make_variables`): The page that describes all tables.
"""
