"""How good predictions are while a run goes on, where the truth is known: `iosig study predictions`."""
