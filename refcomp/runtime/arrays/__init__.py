"""NDArray, and the checks that a call's arguments must pass.

ndarray.py            a compact row-major array on a device
entry_checks.py       checks the arguments of each call against a signature
argument_rules.py     the rules, each with its message
entry_conditions.py   the conditions on sizes
access_status.py      the array in which compiled code notes wrong indices
"""
