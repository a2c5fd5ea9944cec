"""Report the status of a warehouse: landings, releases, problems and notes.

- `condition` (`Condition`, `read_condition`): The condition of a warehouse and its disk.
- `document` (`StatusDocument`, `build_document`): The JSON document.
- `problems` (`Status`, `read_status`, `Problem`, `find_problems`, `find_notes`): Problems and notes of a condition.
- `exposition` (`exposition`): A condition in the text format of Prometheus.
"""
