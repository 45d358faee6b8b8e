"""The definition: what the loop IR means, run statement by statement in plain Python.

interpret.py     the door: a function, its arguments, the sizes of its symbols
statements.py    one function for each class of statement
expressions.py   one function for each class of expression
kernels.py       threads of a group, from barrier to barrier
memory.py        elements of buffers, each access checked
races.py         two threads that touch one element without waiting for each other
scalars.py       each operator and conversion, on single values
intrinsics.py    each intrinsic, on single values
"""
