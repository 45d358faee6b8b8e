"""The machine's state: registers, memory, waves, and which of their bits were written.

arrays.py        the types that instructions compute with
registers.py     vector and scalar registers of waves that run together
memory.py        bytes, who they belong to, and which bits were written
sources.py       the operands of an instruction as something to read
waves.py         the waves of a group
observation.py   observers: whoever wants to see what waves do
"""
