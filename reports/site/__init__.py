"""Build the report site: static pages of a release, usable from a file system or any web server.

Pure: data frames in, file contents out. `iosig.answers.report` reads a release and writes the files.

- `advice` (`AdviceFrames`, `contents`): Recommended file systems and start times of applications.
- `applications` (`ApplicationFrames`, `each`, `listed`, `histories`): The list of applications, and a file for each.
- `changes` (`ChangeFrames`, `told`): Changes since the previous release, as dumbbell plots.
- `figures` (`Page`, `Figure`, `command_line`): Declarations of pages, and the command that runs a figure's query.
- `filesystems` (`FilesystemFrames`, `calendars`, `days`): A heat map for each file system, a file for each day.
- `lineage` (`TableRow`, `contents`): The graph of steps, and the source tables of each table.
- `library` (`assets`): Scripts, styles and vendored libraries.
- `night` (`NightFrames`, `told`): The start page.
- `packing` (`Content`, `packed`, `unpacked`, `columns`, `lean`, `file_hash`): Encoding of data files for pages.
- `pages` (`PAGES`, `page`): The declarations of all pages.
- `population` (`PopulationFrames`, `contents`): Statistics of all runs.
- `quality` (`QualityFrames`, `told`): Coverage of days, failed checks and rejected rows.
- `runs` (`RunFrames`, `jobs`, `hours`): A file for each hour in which runs started.
- `shells` (`shell`, `About`, `root_page`): The HTML of the pages.
- `traces` (`traced`): Findings of traced runs, as data of their runs' pages.
- `tables` (`told`): The page of every table.
"""
