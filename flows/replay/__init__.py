"""Replay of traced calls by real processes on real files (ScalaIOReplay, Luo et al., ESPT 2015, section 3.3)."""
