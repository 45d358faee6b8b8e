"""The state of the machine: registers and memory, and which of their bits were written.

arrays.py        the types that instructions compute with
registers.py     vector and scalar registers of waves that run together
memory.py        bytes, the allocations they belong to, and which bits were written
sources.py       operands of instructions that are read
waves.py         the waves of work-groups
observation.py   the interface of observers of running waves
"""
