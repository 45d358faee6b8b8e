"""Benchmarks of refcomp: each time stands beside a peer's from the same run. Begin with run.py."""
