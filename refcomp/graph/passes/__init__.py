"""Passes over graphs: a file for each, with a function Graph -> Graph of the same name."""
