"""HOW: pure functions on arrays and frames."""
