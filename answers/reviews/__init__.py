"""Verify classes and periods by hand: draw runs for reviewers, and score the classifiers by the reviews.

- `draw` (`ReviewQuery`, `draw_runs`): Runs drawn at random for the page of a reviewer.
- `score` (`read_scores`, `ScoresDocument`): Accuracy of classes and periods by the reviews.
"""
