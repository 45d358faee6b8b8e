"""Control: sequences, optionals and subgraphs, which an executor handles itself.

Reading order: types.py (types of values), machine.py (what runs graphs), operator.py (the record of
an operator), branches.py (`if`), loops.py (`loop`, `scan`), sequences.py, optionals.py,
operators.py (the table).
"""
