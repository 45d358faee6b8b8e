"""Bounds of rounding errors: which floats are legal results. Bounds are kept in long doubles.

- `error_bounds.py`: a bound for each element of a tensor expression
- `statements.py`: the same for the statements of extern operations
- `expressions.py`: expressions at many points at once
- `operations.py`, `intrinsics.py`: each operation on operands with errors
- `arithmetic.py`: the rules of the operators on floats
- `rounded_results.py`: a result that is rounded, and may overflow
- `sums.py`: sums and products of many terms
- `legal_values.py`: an interval about a reference, and infinities, NaN and zeros beside it
- `rounding.py`: rounding to nearest in each float format
"""
