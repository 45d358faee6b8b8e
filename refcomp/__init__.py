"""refcomp: a reference compiler for tensor programs."""
