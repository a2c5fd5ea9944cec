"""What is followed while it grows: each feed hands over flushes, and goes on from a position after a restart."""
