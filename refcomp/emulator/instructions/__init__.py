"""The semantics of instructions: rows of tables, and functions that bind a row to operands.

operation.py       a row of a table: operand types, result types, and the function between them
tables/            the rows, by kind
vector/            rows bound to vector registers, and exchange among lanes
scalar_binding.py  rows bound to scalar registers
memory/            loads, stores, atomics
matrix/            products of matrices
modes.py           rounding, denormals and NaNs, as the MODE register asks for them
spreads.py         how undefined bits spread from sources to results
"""
