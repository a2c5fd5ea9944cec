"""What knowing periods is worth to an I/O scheduler, by simulation: `iosig study scheduling`."""
