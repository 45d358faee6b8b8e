"""Random numbers: counter-based generators, keys, and distributions."""
