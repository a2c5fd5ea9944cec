"""How well networks' patterns are named and clocks are set, where the truth is planted: `iosig study`."""
