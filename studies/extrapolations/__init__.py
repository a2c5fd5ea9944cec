"""What extrapolation gets right, fits and refuses, on traces whose next rank count is known: `iosig study`."""
