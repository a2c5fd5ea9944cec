"""Evaluate the methods: one sub-package per study, run by name with `iosig study NAME`.

- `command`: `iosig study`.
- `study` (`Study`, `find_studies`): The declaration and discovery of studies.
- `pages` (`Table`, `Template`, `write_page`): Pages of studies: a Jinja template in Markdown, its tables and figures.
- `measured` (`read_row`, `read_tables`): Values that studies have written: measures, and tables of their pages.
- `papers` (`compare`, `write`): The page that compares the papers' evaluations with these values.
- `choices` (`fill_blocks`): Tables of the page of methods: which method is best on which kind of site.
- `work_items` (`map_work_items`): Execution of the work items of a study, in this process or in a pool.
- `drawing` (`draw_panels`, `add_headline`, `add_legend_below`): Layout helpers for figures of studies.
- `real_day` (`Day`): A day of measured polls, and the runs in the job log of that day.
- `sites` (`simulate_site`, `observe_site`, `extract_site_signatures`): Simulated sites, and their ground truth.
- `advice/`: Simulated benefit of advice on partition and start time: `iosig study advice`.
- `attribution/`: Accuracy of traffic attribution and slowdowns: `iosig study attribution`.
- `cases/`: Case studies of Chombo and FLASH-IO on planted runs: `iosig study cases`.
- `extrapolations/`: Extrapolated traces compared with traced ones, call by call.
- `forecast/`: Coverage and width of forecast intervals on held-out days: `iosig study forecast`.
- `joint/`: Accuracy of joint signature extraction: `iosig study joint`.
- `networks/`: Detection of planted network patterns and clock offsets: `iosig study networks`.
- `periods/`: Accuracy and false alarms of period detection: `iosig study periods`.
- `population/`: Accuracy of inferred classes and periods, and a year with planted ones: `iosig study population`.
- `predictions/`: Accuracy of online predictions on planted runs: `iosig study predictions`.
- `scheduling/`: Simulated benefit of known periods to an I/O scheduler: `iosig study scheduling`.
- `signatures/`: Accuracy of signature extraction: `iosig study signatures`.
- `unattributed/`: Detection of recurring patterns in unattributed traffic: `iosig study unattributed`.
"""
