"""Unnamed patterns: what moves a file system's bytes again and again, and is in no job log.

- `alike` (`Plane`, `Kind`): Kinds of bursts: more of one volume and width than chance brings together.
- `beside` (`Beside`, `Runs`, `beside`, `begun_with`): Whose runs were there each time, and how likely that is by
  chance.
- `companions` (`Companions`, `companions`): Companions: bursts that come at one distance from those of a kind, whatever
  they move.
- `constellations` (`Constellation`, `Pairs`): Constellations: two bursts, each of its own volume, that come at one
  distance again and again.
- `doubts` (`DoubtParams`, `doubtful`): What may be no application of its own.
- `finding` (`find`): What of traffic that nobody explains comes again, and whose it may be.
- `leftover` (`left_over`, `left_in_proportion`, `on_steps`, `step_for`): What is left of traffic without what is
  explained or flows always.
- `left_bursts` (`LeftBursts`, `left_bursts`): Bursts of what is left.
- `patterns` (`Found`, `Pattern`, `PatternParams`): Patterns: kinds of bursts that come again, alone or together.
- `recognized` (`Known`, `recognized`): Which patterns are those of before.
- `rhythms` (`Rhythm`, `period_of`, `without`): Rhythms of logged applications inside their own runs, also of those that
  have no signature.
- `searching` (`Search`): The search: kinds of bursts are taken apart into trains, applications' own and others, and put
  together to patterns.
- `trains` (`Train`, `train_of`): Trains among bursts of one kind: those that keep one beat for longer than any logged
  application's run.
"""
