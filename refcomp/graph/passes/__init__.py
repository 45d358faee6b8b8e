"""Passes: graph -> graph, one file each; the function has the file's name."""
