"""What advice on where and when to start is worth, by simulation: `iosig study advice`."""
