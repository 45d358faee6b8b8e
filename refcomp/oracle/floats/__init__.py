"""Which floats are legal results: error bounds, kept in long doubles.

error_bounds.py   a bound for each element of a tensor expression
operations.py     each operation on values that are known up to an error
sums.py           sums and products of many terms, in any order
legal_values.py   an interval about a reference, and infinities, NaN and zeros beside it
rounding.py       rounding to nearest in each float format
"""
