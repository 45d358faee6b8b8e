"""Machine code for this processor: loading, calls, and calls back into Python.

machine_code.py   loading a shared object, and calling its functions
joined_calls.py   several calls as one call of C
linked_objects.py the descriptions of functions in loaded libraries
callback.py       calls from machine code into Python
threads.py        the number of threads of a parallel region
thread_pool.py    one pool of threads for the parallel regions of all modules
"""
