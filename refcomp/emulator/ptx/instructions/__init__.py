"""The computations of instructions on values, as functions on numpy arrays."""
