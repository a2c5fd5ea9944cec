"""The papers' experiments: each with its simulation, its figures and its page; `iosig study` runs them.

- `command`: `iosig study`.
- `study` (`Study`, `found`): What a study is: a record in the front of its folder.
- `pages` (`Table`, `Template`, `write`): Pages of studies: a Jinja template in Markdown, its tables and figures.
- `pieces` (`worked`): The work of a study, piece by piece: in this process or in several.
- `drawing` (`row_of_panels`, `headline`, `legend_below`): What figures of studies share.
- `real_day` (`Day`): A real day: what a file system's servers moved, and the runs of its job log.
- `sites` (`made`, `seen`, `signed`): Sites of several families and levels, as a night sees them, and the truth.
- `advice/`: What advice on where and when to start is worth, by simulation: `iosig study advice`.
- `attribution/`: How much of a file system's traffic is given to whom it belongs: `iosig study attribution`.
- `extrapolations/`: What extrapolation gets right, fits and refuses, on traces whose next rank count is known.
- `forecast/`: How often what came was in the range of a forecast: `iosig study forecast`.
- `joint/`: How much nearer signatures come to the truth where they are found together: `iosig study joint`.
- `networks/`: How well networks' patterns are named and clocks are set, where the truth is planted: `iosig study`.
- `periods/`: The evaluation of the searches for periods, reproducible from a seed: `iosig study periods`.
- `population/`: How right classes and periods of runs are where only shared traffic tells: `iosig study population`.
- `predictions/`: How good predictions are while a run goes on, where the truth is known: `iosig study predictions`.
- `scheduling/`: What knowing periods is worth to an I/O scheduler, by simulation: `iosig study scheduling`.
- `signatures/`: The evaluation of the methods that extract signatures, reproducible from a seed.
- `unattributed/`: Patterns in traffic that no signature explains, and the jobs that are likely to have caused it.
"""
