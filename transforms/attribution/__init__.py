"""Attribution: whose bytes a file system's traffic is, by the signatures of the runs that were there.

- `counted` (`lay`, `Counted`): What servers counted for runs themselves, laid on the traffic's steps.
- `explaining` (`explain`, `explain_each`, `Explained`): What each run moved of a file system's traffic.
- `likely` (`likely`, `spread`, `Likely`): Who moved most of what nobody explains, by when they were there.
- `placing` (`place`, `moved`, `disjoint_turns`): When a run did each of its bursts, by what the traffic has room for.
- `runs` (`InRooms`, `Runs`): Runs whose bytes are looked for: when they were there, and what each means to do.
- `slowdowns` (`slowdowns`, `stood`): How much longer bursts took than alone, and whose bytes stood there meanwhile.
"""
