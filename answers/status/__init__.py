"""How a warehouse fares: what is landed and released, what is wrong, and who is told of it.

- `condition` (`Condition`, `condition_of`): What a warehouse and its machine say of themselves at a moment.
- `document` (`StatusDocument`, `document`): A condition for programs.
- `problems` (`Problem`, `problems_of`, `notes_of`): What is wrong with a condition, and what to know, a sentence each.
- `exposition` (`exposition`): A condition as Prometheus reads it.
"""
