"""The definition: what the loop IR means, run statement by statement in plain Python.

- `interpret.py`: the doors: a function, its arguments, the sizes of its symbols
- `statements.py`: one function for each class of statement
- `expressions.py`: one function for each class of expression
- `scalars.py`: each operator and each conversion, on single values
- `intrinsics.py`: each intrinsic, on single values
- `calls.py`: calls of functions outside the loop IR
- `kernels.py`: the threads of a group, from barrier to barrier
- `collectives.py`: calls that the threads of a group compute together
- `memory.py`: the elements of buffers, each access checked
- `races.py`: two threads that access one element without waiting for each other
- `symbols.py`: sizes of shape variables
- `failure.py`: the error, and the text that says where
"""
