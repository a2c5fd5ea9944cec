"""The evaluation of the methods that extract signatures, reproducible from a seed: `iosig study signatures`."""
