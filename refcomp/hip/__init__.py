"""The functions of AMD's HIP runtime, as data. Callers and implementations share this one list.

numbers.py        the constants of each version; made by scripts/hip_numbers.py
api.py            the functions that refcomp calls: names and parameters
interface.py      the same functions with C signatures, in AMD's library or implemented in Python
"""
