"""The report site: static pages of a release, which open from a file and from any web server.

Pure: frames in, files' content out. `iosig.answers.report` reads a release and writes the files.

- `advice` (`AdviceFrames`, `contents`): Where and when applications should start.
- `applications` (`ApplicationFrames`, `each`, `listed`, `histories`): The list of applications, and a file for each.
- `changes` (`ChangeFrames`, `told`): What changed since the release before, as dumbbells.
- `figures` (`Page`, `Figure`, `command_line`): What a page declares, and the command that runs a figure's query.
- `filesystems` (`FilesystemFrames`, `calendars`, `days`): A heat map for each file system, a file for each day.
- `lineage` (`TableRow`, `contents`): The graph of steps, and from what each table is computed.
- `library` (`assets`): Scripts, styles, and the libraries that are kept with them.
- `night` (`NightFrames`, `told`): The first page.
- `packing` (`Content`, `packed`, `unpacked`, `columns`, `lean`, `file_hash`): Numbers and texts as files for a page.
- `pages` (`PAGES`, `page`): Every page, declared once.
- `population` (`PopulationFrames`, `contents`): All runs together.
- `quality` (`QualityFrames`, `told`): How whole days are, what failed, what was refused.
- `runs` (`RunFrames`, `jobs`, `hours`): A file for each hour in which runs started.
- `shells` (`shell`, `About`, `root_page`): The pages as HTML.
- `traces` (`traced`): What traced runs tell, as data of their runs' pages.
- `tables` (`told`): The page of every table.
"""
