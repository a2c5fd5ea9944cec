"""Periods: how often an application does I/O, by several methods, and how reliable the result is.

- `interface/`: Input (`EvenSignals`) and result (`Detections`) of all methods.
- `null_model/`: Periods that a memoryless process rarely produces (`null_tested`), the default method.
- `autocorrelation` (`AutocorrelationParams`, `detect`): FTIO's second method: distances between peaks.
- `autoperiod` (`detect_even`, `detect`): AUTOPERIOD: periods that stand out in the Lomb-Scargle
  periodogram and lie on a hill of the autocorrelation.
- `autoperiod_analysis` (`AutoperiodParams`, `analyze`): Periodograms and autocorrelations, as AUTOPERIOD uses them.
- `autoperiod_hills` (`fit_two_lines`): Windows in which the best fit of two straight lines rises, then falls.
- `autoperiod_periodogram` (`UnevenSignals`): Lomb-Scargle periodograms of many signals at once.
- `ftio` (`detect`, `DftParams`): FTIO's first method: dominant frequencies of the discrete Fourier transform.
- `ftio_0_0_9` (`detect`, `detect_in_samples`, `CompatibleParams`): A reproduction of FTIO 0.0.9, with its faults.
- `ftio_outliers` (`OutlierParams`, `find_outliers`, `merge_outliers`): Outliers of a spectrum, by one or two methods.
- `ftio_spectra` (`compute_spectra`): Discrete Fourier transforms of many signals: power and cosine components.
- `ftio_wavelet` (`detect`, `detect_in_samples`): A reproduction of FTIO 0.0.9's wavelet mode.
- `node_phases` (`estimate_node_phases`): Delays of a run's nodes within its cycles.
- `periodicity` (`characterize_steps`, `characterize_samples`): How periodic a signal is at a given period.
- `phases` (`PhaseTracker`, `find_window_phases`): I/O phases in recent samples.
- `search` (`PeriodParams`, `find_periods`, `Periods`): Periods of many signals by every method.
- `windows` (`clip_steps`, `find_first_phases`): Cut signals to a window, or drop the first phase.
"""
