"""The evaluation of the searches for periods, reproducible from a seed: `iosig study periods`."""
