"""Exact comparison: floats become elements of a finite field, where nothing rounds.

- `field.py`: programs and tensor expressions rewritten for field elements
- `stand_ins.py`: external functions replaced by deterministic stand-ins
"""
