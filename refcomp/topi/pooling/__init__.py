"""Windows that are reduced."""
