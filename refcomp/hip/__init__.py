"""The functions of AMD's HIP runtime, as data: who calls them and who offers them agree here.

numbers.py        the numbers of each version; made by scripts/hip_numbers.py
api.py            the functions that refcomp calls: names and arguments
interface.py      the same functions with their C signatures, in a library or offered by Python
"""
