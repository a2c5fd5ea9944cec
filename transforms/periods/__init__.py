"""Periods: how often an application does its I/O, by every method, and how sure that is.

- `answers` (`Detections`, `Segments`, `gathered`): What a search for periods says: one form for all methods.
- `autocorrelation` (`AutocorrelationParams`, `detect`, `peaks`): How alike signals are to themselves some time later.
- `autoperiod` (`AutoperiodParams`, `detect_even`, `detect`): AUTOPERIOD: periods that stand out in the
  Lomb-Scargle periodogram and lie on a hill of the autocorrelation.
- `autoperiod_hills`: Hills of a function: pieces of it that two straight lines fit best by going up, then down.
- `autoperiod_periodogram` (`UnevenSignals`): The Lomb-Scargle periodogram of many signals at once.
- `controlled` (`detect`, `ControlledParams`): Periods that noise would rarely make: our default.
- `controlled_bursts`: When in its cycles a rhythm moves its bytes: its bursts, and how long they are.
- `controlled_extents`: Where a known period starts and where it stops.
- `controlled_few`: Few cycles: what lines of the spectrum and phases of means tell of them together.
- `controlled_frequencies`: Which frequency a comb has exactly, and whether its lines are multiples of a lower one.
- `controlled_lines`: Lines in a spectrum that are multiples of one frequency, and how probable noise makes them.
- `controlled_means`: Phases that noise hides, or splits: distances of phases of running means.
- `controlled_pauses`: Phases whose distances are more alike than chance makes them.
- `controlled_pieces`: Pieces of many signals: from the first activity to the last, and windows of it.
- `controlled_profiles`: How long a claimed period is, as exactly as its signal tells, and how exactly that is.
- `controlled_segments` (`sought`): Several periods in one signal: one after another, or a fast rhythm on a slow one.
- `even_signals` (`EvenSignals`, `by_length`): Evenly spaced signals of one length, many at a time.
- `finding` (`PeriodParams`, `find`, `Periods`): Periods of many signals by every method.
- `ftio` (`detect`, `DftParams`): The period of many signals by their discrete Fourier transform.
- `ftio_0_0_9` (`judge`, `CompatibleParams`, `detect`, `overlapped`): What FTIO 0.0.9 computes, with its faults.
- `ftio_outliers` (`OutlierParams`): Frequencies that stand out of a spectrum.
- `ftio_spectra` (`spectra`): The discrete Fourier transform of many signals: their power, and their cosines.
- `ftio_wavelet` (`detect`, `judge`): What FTIO 0.0.9's wavelet mode computes: stretches in which a period holds.
- `node_phases` (`node_phases`): When in a run's cycles each of its nodes moves its bytes: by how much it is late.
- `periodicity` (`of_steps`): How periodic a signal is, given its period: volume and time per period.
- `phases` (`PhaseTracker`, `window_phases`): Phases of I/O in recent samples.
- `windows` (`clipped`, `first_phases`, `first_phases_of_signals`): Parts of signals: a window, all but the first phase.
"""
