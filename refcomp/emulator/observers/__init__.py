"""Observers of emulated kernels: they see all that waves do and change nothing.

hazards/       missing waits, races, barriers that waves miss
counting/      instructions, lanes and accesses, counted
coverage.py    what runs have shown of each instruction, for the ledger
"""
