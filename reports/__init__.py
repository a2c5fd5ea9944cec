"""Pictures and pages drawn from published tables."""
