"""WHERE: contracts, sources, the store, the catalogue and its releases."""
