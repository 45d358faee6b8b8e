"""Translation of hot machine code to code of the host, as LLVM IR that a tool compiles.

The interpreter stays the definition, except for the payload and sign of a NaN. A *unit* is a run of
instructions of a block that are all in the tables of `templates/emulated_lanes`. The function of a
unit runs these instructions for one wave after the other. The lanes are in vectors of the host.

For each wave it first checks that all accesses are in bounds, and in a checked run that all bits
were written. Only then it writes memory. If a check fails, the interpreter runs the unit from its
beginning for the waves that are left, and reports the error. Registers that only the unit writes
may hold its results by then. The interpreter writes them again.

texts.py      the texts, for vectors of some width
steps.py      what a unit does for an instruction, as data
units.py      units: the registers that they read and write
names.py      names of values, and lines of text
values.py     reading and writing registers
accesses.py   loads and stores
printer.py    the function of a unit
matrices.py   products of matrices that are spread over a wave
engine.py     compiling units, and calling them
"""
