"""How fast refcomp is, each figure beside a peer's from the same run; start with run.py."""
