"""Machine code for this processor: loaded, called, and called back from.

machine_code.py   loads a shared object, calls its functions
callback.py       from machine code back into Python
threads.py        how many threads a parallel region uses
"""
