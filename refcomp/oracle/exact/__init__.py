"""Exact comparison: floats become elements of a finite field, where nothing rounds.

field.py                programs rewritten
rebuilt_operations.py   operations of te rebuilt from rewritten expressions
stand_ins.py            unknown functions replaced by ones that can be computed
"""
