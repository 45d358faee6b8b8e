"""Observers of emulated kernels. They see everything that waves do, and change nothing.

- hazards/: missing waits, races, barriers that waves miss
- counting/: counts of instructions, lanes and accesses
- coverage.py: what runs have shown of each instruction, for the ledger
"""
