"""Show the file systems up to the last landed poll: traffic, the applications that move it, and outlook.

- `bursts` (`Burst`, `predict_bursts`, `read_predictions`): The next bursts.
- `document` (`LiveDocument`, `build_document`): The JSON document.
- `query` (`Moment`, `FilesystemMoment`, `LiveView`): The live view, cached until more lands.
"""
