"""Exact comparison: floats become elements of a finite field, where nothing rounds.

- `field.py`: programs and tensor expressions rewritten for field elements
- `rebuilt_operations.py`: operations of te rebuilt from rewritten expressions
- `stand_ins.py`: external functions replaced by deterministic stand-ins
"""
