"""Attribution: whose bytes a file system's traffic is, by the signatures of the runs that were there.

- `counted` (`lay`, `Counted`): What servers counted for runs themselves, laid on the traffic's steps.
- `explaining` (`explain`, `Explained`): What each run moved of a file system's traffic.
- `likely` (`likely`, `spread`, `Likely`): Who moved most of what nobody explains, by when they were there.
- `placing` (`place`, `moved`): When a run did each of its bursts, by what the traffic has room for.
- `runs` (`Run`, `Runs`): Runs whose bytes are looked for: when they were there, and what each means to do.
- `slowdowns` (`slowdowns`, `stood`): How much longer bursts took than alone, and whose bytes stood there meanwhile.
"""
